# What the scripts have in common: saying what happens, and installing what is missing by package name.

say() { printf '\n== %s\n' "$*"; }

# step TITLE COMMAND...: runs a command under a heading, with its time.
step() {
    local title=$1 start=$SECONDS
    shift
    say "$title"
    "$@"
    printf -- '-- %s: %d s\n' "$title" $((SECONDS - start))
}

# need COMMAND...: makes sure that commands are there.
need() {
    local command missing=()
    for command in "$@"; do
        command -v "$command" > /dev/null || missing+=("$(package_of "$command")")
    done
    if [ "${#missing[@]}" -gt 0 ]; then
        say "installing ${missing[*]}"
        as_root apt-get update -qq
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y "${missing[@]}" > /dev/null
    fi
}

package_of() {
    case "$1" in
        cc) echo build-essential ;;
        *) echo "$1" ;;
    esac
}

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

# need_cargo: makes sure that cargo can format and lint.
need_cargo() {
    command -v cargo > /dev/null || { echo "cargo is needed: install Rust 1.94 or newer" >&2; exit 1; }
    local component
    for component in fmt clippy; do
        cargo "$component" --version > /dev/null 2>&1 || rustup component add "${component/fmt/rustfmt}"
    done
}
