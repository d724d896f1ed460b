// The scripts for bash, zsh and fish.
import { quote } from '../command/quote.ts';
import type { Command } from '../command-line/command.ts';
import {
  type CommandCompletions,
  type Completion,
  listCompletions,
  type OptionCompletion,
} from './completions.ts';

/** The script for a shell. */
export function renderCompletion(shell: string | undefined, commands: readonly Command[]): string {
  if (shell === undefined || !isShell(shell)) throw new Error(`No completion for ${shell}`);
  return SHELLS[shell](listCompletions(commands));
}

/** Runs on bash 3.2 (macOS) as well, and needs no bash-completion. */
const renderBash = (all: readonly CommandCompletions[]): string => `# postern for bash
_postern() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD - 1]} command='' candidates='' i line
  for ((i = 1; i < COMP_CWORD; i++)); do
    case \${COMP_WORDS[i]} in -*) break ;; esac
    command=\${command:+$command }\${COMP_WORDS[i]}
  done
  COMPREPLY=()
  case $command in
${all.map(renderBashCommand).join('')}  esac
  while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -W "$candidates" -- "$cur")
}
_postern_files() {
  local line
  while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$1")
  compopt -o filenames 2>/dev/null
}
complete -F _postern postern`;

function renderBashCommand({ name, words, options }: CommandCompletions): string {
  const values = options.map(renderBashValue).join('');
  const flags = options.map(({ text }) => text).join(' ');
  const choices = words.map(({ text }) => text).join(' ');
  const pattern = name === '' ? "''" : `${quote(name)} | ${quote(`${name} `)}*`;
  return `    ${pattern})
      case $prev in
${values}        *) candidates=${quote(flags)} ;;
      esac
${words.length === 0 ? '' : `      [[ $command == ${quote(name)} && $prev != -* && $cur != -* ]] && candidates=${quote(choices)}\n`}      ;;
`;
}

function renderBashValue({ text, value }: OptionCompletion): string {
  if (value === 'none') return '';
  if (value === 'file') return `        ${text}) _postern_files "$cur"; return ;;\n`;
  return value === 'any'
    ? `        ${text}) return ;;\n`
    : `        ${text}) candidates=${quote(value.join(' '))} ;;\n`;
}

/** Works as a file `_postern` in `fpath`, and where `eval` reads it. */
const renderZsh = (all: readonly CommandCompletions[]): string => `#compdef postern
_postern() {
  local command='' word prev=\${words[CURRENT - 1]}
  local -a candidates options
  for word in "\${(@)words[2,CURRENT - 1]}"; do
    [[ $word == -* ]] && break
    command="\${command:+$command }$word"
  done
  case $command in
${all.map(renderZshCommand).join('')}  esac
  (( $#candidates )) && _describe -t commands postern candidates
  (( $#options )) && [[ $PREFIX == -* || $#candidates == 0 ]] && _describe -o -t options option options
}
if [[ $funcstack[1] == _postern ]]; then
  _postern "$@"
else
  compdef _postern postern
fi`;

function renderZshCommand({ name, words, options }: CommandCompletions): string {
  const pattern = name === '' ? "''" : `${quote(name)}|${quote(`${name} `)}*`;
  return `    ${pattern})
      case $prev in
${options.map(renderZshValue).join('')}      esac
      options=(${options.map(describeForZsh).join(' ')})
      [[ $command == ${quote(name)} && $prev != -* ]] && candidates=(${words.map(describeForZsh).join(' ')})
      ;;
`;
}

function renderZshValue({ text, value }: OptionCompletion): string {
  if (value === 'none') return '';
  if (value === 'file') return `        ${text}) _files; return ;;\n`;
  return value === 'any'
    ? `        ${text}) return ;;\n`
    : `        ${text}) compadd ${value.join(' ')}; return ;;\n`;
}

const describeForZsh = ({ text, summary }: Completion): string =>
  quote(`${text.replaceAll(':', '\\:')}:${summary.replaceAll(':', '\\:')}`);

const renderFish = (all: readonly CommandCompletions[]): string => `# postern for fish
function __postern_command
  set -l command
  for word in (commandline -opc)[2..]
    string match -q -- '-*' $word; and break
    set -a command $word
  end
  echo "$command"
end
function __postern_is
  string match -q -r -- "^$argv[1]\\$" (__postern_command)
end
complete -c postern -f
${all.flatMap(renderFishCommand).join('\n')}`;

function renderFishCommand({ name, words, options }: CommandCompletions): readonly string[] {
  const exactly = `-n ${quoteForFish(`__postern_is ${quoteForFish(name)}`)}`;
  const within = `-n ${quoteForFish(`__postern_is ${quoteForFish(name === '' ? '' : `${name}( .*)?`)}`)}`;
  return [
    ...words.map(
      ({ text, summary }) =>
        `complete -c postern ${exactly} -a ${quoteForFish(text)} -d ${quoteForFish(summary)}`,
    ),
    ...options.map(
      (option) =>
        `complete -c postern ${within} -l ${option.text.slice(2)}${renderFishValue(option)} -d ${quoteForFish(option.summary)}`,
    ),
  ];
}

function renderFishValue({ value }: OptionCompletion): string {
  if (value === 'none') return '';
  if (value === 'file') return ' -rF';
  return value === 'any' ? ' -x' : ` -x -a ${quoteForFish(value.join(' '))}`;
}

/** Within single quotes fish knows \\' and \\\\. */
const quoteForFish = (text: string): string => `'${text.replace(/[\\']/g, '\\$&')}'`;

const SHELLS = { bash: renderBash, zsh: renderZsh, fish: renderFish } as const;

const isShell = (name: string): name is keyof typeof SHELLS => Object.hasOwn(SHELLS, name);
