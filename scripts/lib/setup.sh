# What the scripts have in common: saying what happens, and installing what is missing by package name.

say() { printf '\n== %s\n' "$*"; }

# The steps so far, with their seconds.
STEPS=()

# step TITLE COMMAND...: runs a command under a heading, with its time and that of all processors. The first step that fails ends the script.
step() {
    local title=$1 start=$SECONDS cpu
    shift
    say "$title"
    cpu=$(cpu_seconds)
    # shellcheck disable=SC2064  # the title of now
    trap "printf '\n== FAILED: %s\n' '${title//\'/}' >&2" EXIT
    "$@"
    trap - EXIT
    STEPS+=("$(printf '%5d %5d  %s' $((SECONDS - start)) $(($(cpu_seconds) - cpu)) "$title")")
    printf -- '-- %s: %d s\n' "$title" $((SECONDS - start))
}

# say_steps: says where the time went.
say_steps() {
    say "all passed in $SECONDS s"
    printf '%5s %5s\n' s CPU
    printf '%s\n' "${STEPS[@]}"
}

# cpu_seconds: the processor time of all commands that this script ran and that have ended, from Linux' account of it; 0 elsewhere.
cpu_seconds() {
    local fields=(0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0)
    [ -r "/proc/$$/stat" ] && read -ra fields < "/proc/$$/stat"
    echo $(((fields[15] + fields[16]) / 100))
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
        objdump) echo binutils ;;
        dpkg-deb) echo dpkg ;;
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
