"""The command as users meet it: a real process, its output, its exit code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from seamark import __version__
from seamark.cli import main as cli
from seamark.cli.exits import Exit
from seamark.errors import Corrupt, WriteFailed
from tests.cli.process import CLEAN, run


def test_version_and_help_need_no_server_libraries(tmp_path: Path) -> None:
    assert __version__ in run("--version", cwd=tmp_path).stdout
    shown = run("--help", cwd=tmp_path).stdout
    for verb in cli.VERBS:
        assert verb.name in shown
        assert verb.summary in shown
    code = "import sys; from seamark.cli import main; print(sorted({'lmdb', 'numpy', 'uvicorn'} & set(sys.modules)))"
    probe = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert probe.stdout.strip() == "[]"


@pytest.mark.slow
def test_every_verb_explains_itself(tmp_path: Path) -> None:
    for verb in cli.VERBS:
        shown = run(verb.name, "--help", cwd=tmp_path)
        assert shown.returncode == Exit.OK, shown.stderr
        assert f"seamark {verb.name}" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("sevre",), "No such command"),
        (("config", "--prot", "1"), "--prot"),
        (("config", "--port", "x"), "seamark: port (flag --port): 'x' is not valid"),
        (("config", "--config", "absent.toml"), "absent.toml"),
        (("verify", "--data", "absent"), "holds no store"),
        (("backup", "--data", "absent", "copy"), "holds no store"),
        (("doctor", "--nats-url", "http://x"), "nats://host:port"),
    ],
)
def test_what_cannot_be_started_is_one_line_and_code_2(arguments: tuple[str, ...], says: str, tmp_path: Path) -> None:
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == Exit.USAGE
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == "" or arguments[0] == "doctor"


def test_serve_refuses_a_public_address_without_keys(tmp_path: Path) -> None:
    done = run("serve", "--host", "0.0.0.0", "--port", "0", cwd=tmp_path)
    assert done.returncode == Exit.USAGE
    assert "SEAMARK_API_KEYS" in done.stderr


def test_a_reader_that_leaves_is_no_error(tmp_path: Path) -> None:
    command = f"{sys.executable} -m seamark config | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path, env=CLEAN, timeout=60, check=True
    )
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] == "0"


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (WriteFailed("the disk is full"), Exit.FAULT, "seamark: the disk is full"),
        (Corrupt("bad byte", stream="s", seq=1, where="chunk"), Exit.FAULT, "seamark: bad byte"),
        (ModuleNotFoundError("No module named 'uvicorn'", name="uvicorn"), Exit.MISSING, "seamark[server]"),
        (PermissionError(13, "Permission denied", "/x"), Exit.FAULT, "/x: Permission denied"),
        (KeyboardInterrupt(), Exit.INTERRUPTED, "stopped"),
    ],
)
def test_errors_become_exit_codes(
    error: BaseException, code: Exit, says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def raising(*_arguments: object, **_options: object) -> None:
        raise error

    monkeypatch.setattr(cli.seamark, "invoke", raising)
    with pytest.raises(SystemExit) as left:
        cli.main(["config"])
    assert left.value.code == code
    assert says in capsys.readouterr().err


def test_our_own_missing_module_is_a_fault_and_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def raising(*_arguments: object, **_options: object) -> None:
        raise ModuleNotFoundError("No module named 'seamark.gone'", name="seamark.gone")

    monkeypatch.setattr(cli.seamark, "invoke", raising)
    with pytest.raises(ModuleNotFoundError):
        cli.main(["config"])
