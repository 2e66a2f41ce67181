"""`celc completion`: a script with which a shell completes commands, options and files.

The script is made from the parser of the command line, so both always agree. celc does not run
while a shell completes.
"""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

from celc_runtime.plan.frozen import frozen

SHELLS = ("bash", "zsh", "fish")


@frozen
class _Option:
    """An option of a command."""

    names: tuple[str, ...]
    """All its spellings."""
    takes: tuple[str, ...] | None
    """The values that it can take. Empty: any text; ("<file>",): a file; None: it has no value."""
    help: str


@frozen
class _Command:
    name: str
    help: str
    options: tuple[_Option, ...]
    values: tuple[str, ...]


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """The script for one of SHELLS."""
    commands = list(_commands(parser))
    program = parser.prog
    makers = {"bash": _bash, "zsh": _zsh, "fish": _fish}
    return makers[shell](program, commands)


def _commands(parser: argparse.ArgumentParser) -> Iterator[_Command]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {one.dest: one.help or "" for one in action._choices_actions}
            for name, sub in action.choices.items():
                options = tuple(_option(one) for one in sub._actions if one.option_strings)
                values = [
                    str(value)
                    for one in sub._actions
                    if not one.option_strings and one.choices
                    for value in one.choices
                ]
                yield _Command(name, helps.get(name, ""), options, tuple(values))


def _option(action: argparse.Action) -> _Option:
    takes: tuple[str, ...] | None = None
    if action.nargs != 0:
        takes = tuple(str(choice) for choice in action.choices or ())
        if action.type is Path:
            takes = ("<file>",)
    text = re.sub(r"\s+", " ", (action.help or "").replace("%%", "%"))
    return _Option(tuple(action.option_strings), takes, text)


# --- bash -----------------------------------------------------------------------------------------


def _bash(program: str, commands: list[_Command]) -> str:
    function = f"_{program}_complete"
    lines = [
        f"# Completion of {program} for bash. Put it into your ~/.bashrc:",
        f'#     eval "$({program} completion bash)"',
        f"{function}() {{",
        '    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"',
        '    local command="${COMP_WORDS[1]}" words=""',
        "    COMPREPLY=()",
        '    if [ "$COMP_CWORD" -eq 1 ]; then',
        f'        words="{" ".join(one.name for one in commands)} --help --version"',
        '        COMPREPLY=($(compgen -W "$words" -- "$word"))',
        "        return",
        "    fi",
        '    case "$command $before" in',
    ]
    for command in commands:
        for option in command.options:
            if option.takes is not None:
                pattern = "|".join(f'"{command.name} {name}"' for name in option.names)
                lines.append(f"        {pattern}) {_bash_values(option.takes)}; return ;;")
    lines += ["    esac", '    case "$command" in']
    for command in commands:
        names = " ".join(name for option in command.options for name in option.names)
        words = " ".join((names, *command.values))
        lines.append(f'        {command.name}) words="{words}" ;;')
    return "\n".join(
        [
            *lines,
            "    esac",
            '    COMPREPLY=($(compgen -W "$words" -- "$word"))',
            '    case "$word" in -*) ;; *) COMPREPLY+=($(compgen -f -- "$word")) ;; esac',
            "}",
            f"complete -o filenames -F {function} {program}",
            "",
        ]
    )


def _bash_values(takes: tuple[str, ...]) -> str:
    if takes == ("<file>",):
        return 'COMPREPLY=($(compgen -f -- "$word"))'
    return f'COMPREPLY=($(compgen -W "{" ".join(takes)}" -- "$word"))'


# --- zsh ------------------------------------------------------------------------------------------


def _zsh(program: str, commands: list[_Command]) -> str:
    lines = [
        f"#compdef {program}",
        f"# Completion of {program} for zsh. Write it to a file _{program} in a folder of $fpath,",
        f'# or put into your ~/.zshrc, after compinit: eval "$({program} completion zsh)"',
        f"_{program}() {{",
        "    local -a commands",
        "    commands=(",
        *(f"        {_single(f'{one.name}:{one.help}')}" for one in commands),
        "    )",
        "    if (( CURRENT == 2 )); then",
        "        _describe command commands",
        "        return",
        "    fi",
        '    local command="$words[2]"',
        "    shift words; (( CURRENT-- ))",
        '    case "$command" in',
    ]
    for command in commands:
        rest = f"({' '.join(command.values)})" if command.values else "_files"
        specs = [*map(_zsh_option, command.options), f"'*: :{rest}'"]
        lines += [f"        {command.name})", "            _arguments \\"]
        lines += [f"                {spec} \\" for spec in specs[:-1]]
        lines += [f"                {specs[-1]} ;;"]
    return "\n".join([*lines, "    esac", "}", f"compdef _{program} {program}", ""])


def _zsh_option(option: _Option) -> str:
    text = re.sub(r"([\[\]:\\])", r"\\\1", option.help)
    takes = ""
    if option.takes is not None:
        values = f"({' '.join(option.takes)})" if option.takes else ""
        takes = ":value:" + ("_files" if option.takes == ("<file>",) else values)
    names = option.names[0] if len(option.names) == 1 else "{" + ",".join(option.names) + "}"
    return f"{names}{_single(f'[{text}]{takes}')}"


# --- fish -----------------------------------------------------------------------------------------


def _fish(program: str, commands: list[_Command]) -> str:
    lines = [
        f"# Completion of {program} for fish. Write it to "
        f"~/.config/fish/completions/{program}.fish",
    ]
    for command in commands:
        lines.append(
            f"complete -c {program} -f -n __fish_use_subcommand -a {command.name} "
            f"-d {_single(command.help)}"
        )
    for command in commands:
        seen = f"-n '__fish_seen_subcommand_from {command.name}'"
        lines += [_fish_option(program, seen, option) for option in command.options]
        if command.values:
            lines.append(f"complete -c {program} -f {seen} -a '{' '.join(command.values)}'")
    return "\n".join([*lines, ""])


def _fish_option(program: str, seen: str, option: _Option) -> str:
    words = [f"complete -c {program} {seen}"]
    for name in option.names:
        words.append(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}")
    if option.takes == ("<file>",):
        words.append("-r")
    elif option.takes:
        words.append(f"-x -a '{' '.join(option.takes)}'")
    elif option.takes is not None:
        words.append("-x")
    return " ".join([*words, f"-d {_single(option.help)}"])


def _single(text: str) -> str:
    """A text in single quotes. The shells escape a quote in different ways, so ’ stands for it."""
    return "'" + text.replace("'", "’") + "'"
