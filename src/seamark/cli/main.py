"""The `seamark` command. A verb is imported only when it is used, so that every verb starts quickly."""

from __future__ import annotations

import sys
from typing import NoReturn

import click

from seamark import __version__
from seamark.cli.exits import Exit
from seamark.cli.output import mute_stdout
from seamark.cli.verbs import Verb, Verbs
from seamark.errors import BadInput, Conflict, Missing, SeamarkError

VERBS: tuple[Verb, ...] = (
    Verb("serve", "Run the server."),
    Verb("flags", "Manifests of feature flags, and who may change them."),
    Verb("config", "Show every setting, its value and where it came from."),
    Verb("doctor", "Check this machine, and say what to do about what it finds."),
    Verb("verify", "Walk a data directory and check every byte that is in use."),
    Verb("backup", "Copy a data directory consistently, also while a server runs on it."),
    Verb("bench", "Measure Seamark on this machine against references in the same run."),
)


@click.group(
    cls=Verbs,
    rows=VERBS,
    package="seamark.cli",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
@click.version_option(__version__, prog_name="seamark")
def seamark() -> None:
    """A change server: what has changed since I last looked?"""


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run one verb and end the process. Errors are one line on stderr, never a traceback."""
    try:
        # Not `seamark.main`, which would end with 1 when the reader of our output leaves.
        with seamark.make_context("seamark", sys.argv[1:] if arguments is None else list(arguments)) as context:
            code = seamark.invoke(context)
    except click.exceptions.Abort:
        _leave("stopped", Exit.INTERRUPTED)
    except KeyboardInterrupt:
        _leave("stopped", Exit.INTERRUPTED)
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(Exit.USAGE)
    except BrokenPipeError:
        mute_stdout()
        sys.exit(Exit.OK)
    except SeamarkError as error:
        _leave(str(error), _code_of(error))
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "seamark":
            raise
        _leave(f"{error.name} is not installed; run: pip install 'seamark[server]'", Exit.MISSING)
    except OSError as error:
        _leave(f"{error.filename + ': ' if error.filename else ''}{error.strerror or error}", Exit.FAULT)
    sys.exit(code if isinstance(code, int) else Exit.OK)


def _code_of(error: SeamarkError) -> Exit:
    if isinstance(error, BadInput | Missing):
        return Exit.USAGE
    return Exit.FINDINGS if isinstance(error, Conflict) else Exit.FAULT


def _leave(message: str, code: Exit) -> NoReturn:
    click.echo(f"seamark: {message}", err=True)
    sys.exit(code)
