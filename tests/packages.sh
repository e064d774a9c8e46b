#!/bin/sh
# Programs that tests start and pip cannot install: Chromium with its driver, curl, a C compiler. What is missing is
# installed where that can be done: on Debian, by root. This never fails; what it means that something is still missing,
# the tests say.
has() { command -v "$1" >/dev/null; }

missing=
{ has chromedriver && { has chromium || has chromium-browser || has google-chrome; }; } ||
	missing="$missing chromium chromium-driver"
has curl || missing="$missing curl"
has cc || missing="$missing gcc libc6-dev"
[ -z "$missing" ] && exit 0

if [ "$(id -u)" != 0 ] || ! has apt-get; then
	echo "Some tests need$missing, which are not on PATH and which only root on Debian can install here." >&2
	exit 0
fi
echo "Installing$missing for the tests ..." >&2
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
get() {
	apt-get -o Acquire::Retries=2 -o Acquire::http::Timeout=20 "$@" >"$log" 2>&1 </dev/null && return
	tail -n 5 "$log" >&2
	return 1
}
get update && for package in $missing; do
	get install --yes --no-install-recommends "$package" # one by one: where there is no Chromium there may be curl
done
rm -f "$log"
exit 0
