//! One readable table: a command line, and the actions that it is read as, the one that names it first.

use super::*;

fn check(table: &[(&str, &str)]) {
    let picture = |action: &Action| format!("{} {}", action.kind.name(), action.subject);
    let wrong = table.iter().filter_map(|(script, expected)| {
        let ScriptActions { mut actions, .. } = read(script, None);
        let first = primary_action(&actions);
        actions[..=first].rotate_right(1);
        let found = actions.iter().map(picture).collect::<Vec<_>>().join("; ");
        (found != *expected).then(|| format!("{script}\n  found    {found}\n  expected {expected}\n"))
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

const TABLE: &[(&str, &str)] = &[
    // What we hid of a script is not read.
    (
        "python3 - <<'EOF'\n[990 characters, 33 lines of this argument are hidden: too old; trimtab recall 0123456789ab]",
        "run $ python3 -",
    ),
    // Reading.
    ("cat src/main.rs", "read src/main.rs"),
    ("cat ./src/../a.rs", "read a.rs"),
    ("cat -n a.py b.py", "read a.py; read b.py"),
    ("bat --line-range 10:20 a.rs", "read a.rs:10-20"),
    ("nl -ba a.py | sed -n '10,20p'", "read a.py:10-20"),
    ("sed -n '5,80p' src/lib.rs", "read src/lib.rs:5-80"),
    ("sed -n 100,\\$p x.c", "read x.c:100-"),
    ("sed -n '7p' x.c", "read x.c:7-7"),
    ("sed -n '10,+5p' x.c", "read x.c:10-15"),
    ("sed -n '1,5p;10,12p' x.c", "read x.c:part"),
    ("sed -n '/start/,/end/p' x.c", "read x.c:part"),
    ("head -n 50 a.txt", "read a.txt:1-50"),
    ("head -20 a.txt", "read a.txt:1-20"),
    ("head a.txt", "read a.txt:1-10"),
    ("head -c 300 a.txt", "read a.txt:part"),
    ("tail -n +40 a.txt", "read a.txt:40-"),
    ("tail -5 a.txt", "read a.txt:part"),
    ("tail -n +40 a.txt | head -n 10", "read a.txt:40-49"),
    ("cat a.txt | head -50", "read a.txt:1-50"),
    ("cat a.txt | tail -5", "read a.txt:part"),
    ("awk 'NR>=10 && NR<=20' f.go", "read f.go:10-20"),
    ("awk 'NR==10,NR==20' f.go", "read f.go:10-20"),
    ("awk '{print $1}' f.go", "read f.go:part"),
    ("less README.md", "read README.md"),
    ("jq '.name' package.json", "read package.json:part"),
    ("cat package.json | jq .scripts", "read package.json:part"),
    ("Get-Content a.cs -TotalCount 30", "read a.cs:1-30"),
    ("diff a.txt b.txt", "read a.txt:part; read b.txt:part"),
    ("xxd -l 64 a.bin", "read a.bin:part"),
    ("open src/fields.py 120", "read src/fields.py:part"),
    // Searching.
    ("rg -n 'fn main' src", "search 'fn main' in src"),
    ("rg foo", "search 'foo'"),
    ("rg -t rust --glob '*.rs' foo crates/a", "search 'foo' in crates/a"),
    ("grep -rn \"class Foo\" django/", "search 'class Foo' in django"),
    ("awk 'NR > 1 && length($4) > 7' a.csv", "read a.csv:part"),
    ("awk 'NR==5,NR==9' a.rs", "read a.rs:5-9"),
    ("awk 'NR>4 && NR<=9 {print}' a.rs", "read a.rs:5-9"),
    ("awk '{print NR\": \"$0}' a.rs", "read a.rs:part"),
    ("grep -rE -A 3 'a|b' . | head -20", "search 'a|b' in ."),
    ("grep -e one f.txt", "search 'one' in f.txt"),
    ("grep -n --include='*.py' -r needle lib", "search 'needle' in lib"),
    ("cat f.txt | grep -i warn", "search 'warn' in f.txt"),
    ("ag TODO src", "search 'TODO' in src"),
    ("git grep -n needle", "search 'needle'"),
    ("find . -name '*.py' | xargs grep -l needle", "search 'needle' in ."),
    ("find src -type f -exec grep -l needle {} +", "search 'needle' in src"),
    ("Select-String -Pattern foo -Path a.cs", "search 'foo' in a.cs"),
    ("search_dir \"TimeDelta\" src", "search 'TimeDelta' in src"),
    ("ast-grep -p 'foo($A)' src", "search 'foo($A)' in src"),
    // Listing.
    ("ls -la", "list ./"),
    ("ls src tests", "list src/; list tests/"),
    ("ls -R src", "list src/**"),
    ("ls | grep py", "list ./"),
    ("tree -L 2 src", "list src/"),
    ("tree", "list ./**"),
    ("find . -name '*.rs'", "list '*.rs' in ."),
    ("find src -type f", "list src/**"),
    ("find . -maxdepth 1", "list ./"),
    ("fd -e rs", "list 'rs'"),
    ("fd main src", "list 'main' in src"),
    ("rg --files src", "list src/**"),
    ("git ls-files", "list ./**"),
    ("wc -l src/a.rs", "list src/a.rs:part"),
    ("find_file \"fields.py\" src", "list 'fields.py' in src"),
    // Writing, editing, deleting.
    ("cat > a.py <<'EOF'\nprint(1)\nEOF", "write a.py"),
    ("cat <<EOF > src/a.py\nx\nEOF", "write src/a.py"),
    ("cat >> a.py <<EOF\nx\nEOF", "edit a.py:part"),
    ("echo hi > out.txt", "write out.txt"),
    ("echo hi >> out.txt", "edit out.txt:part"),
    ("echo hi | tee out.txt", "write out.txt"),
    ("printf 'a' | tee -a out.txt", "edit out.txt:part"),
    ("sed -i 's/a/b/' src/x.py", "edit src/x.py:part"),
    ("sed -i '' 's/a/b/' src/x.py", "edit src/x.py:part"),
    ("sed -i -e 's/a/b/' x.py y.py", "edit x.py:part; edit y.py:part"),
    ("perl -pi -e 's/a/b/' x.pl", "edit x.pl:part"),
    ("cp a.txt b.txt", "write b.txt"),
    ("mv a.txt b.txt", "write b.txt; delete a.txt"),
    ("mkdir -p src/new", "write src/new/"),
    ("touch a.txt", "edit a.txt:part"),
    ("rm -rf build/ a.txt", "delete build/; delete a.txt"),
    ("find . -name '*.pyc' -delete", "delete ./"),
    (
        "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.rs\n@@\n-x\n+y\n*** End Patch\nEOF",
        "edit a.rs:part",
    ),
    ("patch -p1 <<'EOF'\n--- a/x.c\n+++ b/x.c\n@@ -1 +1 @@\n-a\n+b\nEOF", "edit x.c:part"),
    ("python3 - <<'EOF'\np = 'x'\nopen('src/a.py', 'w').write(p)\nEOF", "edit src/a.py:part"),
    ("edit 4:4\ndef division(a):\nend_of_edit", "edit -"),
    ("create reproduce.py", "write reproduce.py"),
    // Version control.
    ("git status", "git $ git status"),
    ("git --no-pager diff HEAD~1", "git $ git diff HEAD~1"),
    ("git -C sub log --oneline -5", "git $ git -C sub log --oneline -5"),
    ("git add -A && git commit -m \"fix: it\"", "git $ git add -A; git $ git commit -m fix: it"),
    ("git diff | head -100", "git $ git diff"),
    ("gh pr view 12 --json title", "git $ gh pr view 12 --json title"),
    // Tests.
    ("pytest -x tests/test_a.py 2>&1 | tail -20", "test $ pytest -x tests/test_a.py"),
    ("python -m pytest tests", "test $ python -m pytest tests"),
    ("python -m unittest discover", "test $ python -m unittest discover"),
    ("python manage.py test app", "test $ python manage.py test app"),
    ("./tests/runtests.py forms", "test $ ./tests/runtests.py forms"),
    ("cargo test -p core", "test $ cargo test -p core"),
    ("cargo nextest run", "test $ cargo nextest run"),
    ("go test ./... -run TestX", "test $ go test ./... -run TestX"),
    ("npm test", "test $ npm test"),
    ("npm run test:unit -- --watch=false", "test $ npm run test:unit -- --watch=false"),
    ("pnpm --filter web test", "test $ pnpm --filter web test"),
    ("yarn jest a.test.ts", "test $ yarn jest a.test.ts"),
    ("bun test src", "test $ bun test src"),
    ("npx vitest run", "test $ vitest run"),
    ("mvn -q test", "test $ mvn -q test"),
    ("./gradlew test --tests A", "test $ ./gradlew test --tests A"),
    ("make test", "test $ make test"),
    ("ctest --output-on-failure", "test $ ctest --output-on-failure"),
    ("bundle exec rspec spec/a_spec.rb", "test $ rspec spec/a_spec.rb"),
    ("vendor/bin/phpunit", "test $ vendor/bin/phpunit"),
    ("uv run pytest -q", "test $ pytest -q"),
    ("dotnet test", "test $ dotnet test"),
    ("mise run test:ci", "test $ mise run test:ci"),
    ("docker exec -w /app box pytest -q", "test $ pytest -q"),
    // Builds and checks.
    ("cargo build --release", "build $ cargo build --release"),
    ("cargo clippy --all-targets", "build $ cargo clippy --all-targets"),
    ("go build ./...", "build $ go build ./..."),
    ("go vet ./...", "build $ go vet ./..."),
    ("npx tsc --noEmit", "build $ tsc --noEmit"),
    ("npm run build", "build $ npm run build"),
    ("npm install", "build $ npm install"),
    ("make", "build $ make"),
    ("golangci-lint run", "build $ golangci-lint run"),
    ("ruff check .", "build $ ruff check ."),
    ("python -m mypy src", "build $ python -m mypy src"),
    ("pip install -e .", "build $ pip install -e ."),
    ("eslint src --fix", "build $ eslint src --fix"),
    ("docker build -t x .", "build $ docker build -t x ."),
    ("gcc -o a a.c", "build $ gcc -o a a.c"),
    // The web.
    ("curl -s https://example.org/api", "web https://example.org/api"),
    ("curl -s -H 'A: b' https://example.org/x | jq .id", "web https://example.org/x"),
    ("curl -o page.html https://example.org", "write page.html; web https://example.org"),
    ("wget -q https://example.org/a.zip", "web https://example.org/a.zip"),
    // Running.
    ("python reproduce.py", "run $ python reproduce.py"),
    ("node -e 'console.log(1)'", "run $ node -e console.log(1)"),
    ("python -c \"print(1)\"", "run $ python -c print(1)"),
    ("./target/debug/app --help", "run $ ./target/debug/app --help"),
    ("sleep 5", "run $ sleep 5"),
    ("echo done", "run $ echo done"),
    ("docker ps", "run $ docker ps"),
    // Lines of several commands, wrappers and directories.
    ("cd /srv/app && cat src/a.rs", "read /srv/app/src/a.rs"),
    ("cd sub && cat a.rs && cd .. && cat b.rs", "read sub/a.rs; read b.rs"),
    ("(cd sub && cat a.rs); cat b.rs", "read sub/a.rs; read b.rs"),
    ("cat a.rs && pytest -q", "test $ pytest -q; read a.rs"),
    ("sed -i 's/a/b/' a.py && python a.py", "edit a.py:part; run $ python a.py"),
    ("echo '---' && cat a.rs", "read a.rs; run $ echo ---"),
    ("bash -lc 'cd /app && rg foo src'", "search 'foo' in /app/src"),
    ("bash -lc \"sed -n '1,20p' a.rs\"", "read a.rs:1-20"),
    ("FOO=1 BAR=2 cargo test", "test $ cargo test"),
    ("timeout 60 pytest -q", "test $ pytest -q"),
    ("sudo -u app env X=1 nice -n 5 make test", "test $ make test"),
    ("time cargo build", "build $ cargo build"),
    ("for f in a b; do cat $f; done", "read $f"),
    ("if [ -f a.txt ]; then cat a.txt; fi", "read a.txt"),
    ("cat a.txt > b.txt", "write b.txt"),
    (
        "go test ./... > out.txt 2>&1; tail -50 out.txt",
        "test $ go test ./...; write out.txt; read out.txt:part",
    ),
    ("ssh host 'cat /etc/hosts'", "run $ cat /etc/hosts"),
    ("submit", "ask -"),
];

#[test]
fn command_lines_are_read_as_what_they_do() {
    assert!(TABLE.len() >= 120, "{}", TABLE.len());
    check(TABLE);
}

#[test]
fn a_shell_that_lasts_ends_where_it_went() {
    let ends = |script: &str, from: Option<&str>| read(script, from).cwd;
    assert_eq!(ends("cd /srv/app && ls", None).as_deref(), Some("/srv/app"));
    assert_eq!(ends("cd src", Some("/srv/app")).as_deref(), Some("/srv/app/src"));
    assert_eq!(ends("(cd src && ls)", Some("/srv/app")).as_deref(), Some("/srv/app"));
    assert_eq!(ends("cd $HOME", Some("/srv/app")), None);
}

#[test]
fn nothing_makes_the_reader_fail() {
    for script in [
        "", "   ", "'", "\"", "$(", "`", "<<", "cat <<", "| | |", "((", "))", "a=(1 2)", "\\", "sed",
        "find -exec", "é…`",
    ] {
        assert!(!read(script, None).actions.is_empty(), "{script}");
    }
}
