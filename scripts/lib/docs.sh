# Steps of scripts/test about words, pages and packages.

# words: the prose has none of the words that make it hard to read.
words() { scripts/words; }

# site: the documentation site builds, and every link in it leads somewhere.
site() { mkdir -p target; scripts/site > target/site.log 2>&1 || { cat target/site.log; return 1; }; }

# packages: every package that can be built here installs in a clean folder and works there.
packages() { scripts/package-test; }
