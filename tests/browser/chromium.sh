#!/bin/sh
# Chromium and its driver for tests/browser, where they are missing and can be had: on Debian, by root. It never fails;
# what it means that there is none, tests/browser/conftest.py says.
command -v chromedriver >/dev/null && {
	command -v chromium || command -v chromium-browser || command -v google-chrome
} >/dev/null && exit 0

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
	echo "There is no Chromium with its chromedriver on PATH, and only root on Debian can install them here." >&2
	exit 0
fi
echo "Installing Chromium for the browser tests ..." >&2
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
{
	apt-get -o Acquire::Retries=3 update &&
		apt-get -o Acquire::Retries=3 install --yes --no-install-recommends chromium chromium-driver
} >"$log" 2>&1 </dev/null || tail -n 5 "$log" >&2
rm -f "$log"
exit 0
