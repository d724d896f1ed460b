// Renders completion scripts for bash, zsh and fish.

import { quoteForShell as quote } from '../platform/text.ts';
import { type Command, type OptionRow, toFlag } from './command-line/command.ts';

export function renderCompletion(shell: string | undefined, commands: readonly Command[]): string {
  const render = SHELLS[shell ?? ''];
  if (render === undefined) throw new Error(`No completion for ${shell}`);
  return render(listCompletions(commands));
}

/** Compatible with bash 3.2 (macOS), and independent of bash-completion. */
const renderBash = (all: readonly CommandCompletions[]) => `# postern for bash
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

function renderBashCommand({ name, words, options }: CommandCompletions) {
  const values = renderCases(
    options,
    '_postern_files "$cur"',
    (candidates) => `candidates=${quote(candidates)}`,
  );
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

/** Renders a `case` for bash or zsh with the values of each option. `offer` offers words, separated by spaces. */
const renderCases = (
  options: readonly OptionCompletion[],
  files: string,
  offer: (words: string) => string,
) =>
  options
    .map(({ text, value }) => {
      if (value === 'none') return '';
      if (value === 'any') return `        ${text}) return ;;\n`;
      const command = value === 'file' ? `${files}; return` : offer(value.join(' '));
      return `        ${text}) ${command} ;;\n`;
    })
    .join('');

/** Works both as a file `_postern` in `fpath` and with `eval`. */
const renderZsh = (all: readonly CommandCompletions[]) => `#compdef postern
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

function renderZshCommand({ name, words, options }: CommandCompletions) {
  const values = renderCases(options, '_files', (candidates) => `compadd ${candidates}; return`);
  const pattern = name === '' ? "''" : `${quote(name)}|${quote(`${name} `)}*`;
  return `    ${pattern})
      case $prev in
${values}      esac
      options=(${options.map(describeForZsh).join(' ')})
      [[ $command == ${quote(name)} && $prev != -* ]] && candidates=(${words.map(describeForZsh).join(' ')})
      ;;
`;
}

const describeForZsh = ({ text, summary }: Completion) =>
  quote(`${text.replaceAll(':', '\\:')}:${summary.replaceAll(':', '\\:')}`);

const renderFish = (all: readonly CommandCompletions[]) => `# postern for fish
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

function renderFishCommand({ name, words, options }: CommandCompletions) {
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

function renderFishValue({ value }: OptionCompletion) {
  if (value === 'none') return '';
  if (value === 'file') return ' -rF';
  return value === 'any' ? ' -x' : ` -x -a ${quoteForFish(value.join(' '))}`;
}

/** Within single quotes, fish interprets \\' and \\\\. */
const quoteForFish = (text: string) => `'${text.replace(/[\\']/g, '\\$&')}'`;

const SHELLS: Readonly<Record<string, typeof renderBash>> = {
  bash: renderBash,
  zsh: renderZsh,
  fish: renderFish,
};

interface Completion {
  readonly text: string;
  readonly summary: string;
}

interface OptionCompletion extends Completion {
  /** The option's value: none, a file name, one of some words, or anything else. */
  readonly value: 'none' | 'file' | 'any' | readonly string[];
}

interface CommandCompletions {
  /** One word, or two. */
  readonly name: string;
  /** Words that can appear instead of an option. */
  readonly words: readonly Completion[];
  readonly options: readonly OptionCompletion[];
}

const HELP: OptionCompletion = { text: '--help', summary: 'print help', value: 'none' };

/** Completions of every command, of every group, and, under the name `''`, of the first word. */
function listCompletions(commands: readonly Command[]): readonly CommandCompletions[] {
  const first = new Map<string, string>();
  for (const { name, summary } of commands) {
    const [word = name, second] = name.split(' ');
    first.set(word, second === undefined ? summary : `${second}: ${summary}`);
  }
  const names = [...first].map(([text, summary]) => ({ text, summary }));
  const version = { text: '--version', summary: 'print the version', value: 'none' } as const;
  return [
    {
      name: '',
      words: [...names, { text: 'help', summary: 'print help' }],
      options: [HELP, version],
    },
    { name: 'help', words: names, options: [] },
    ...commands.map(({ name, operands: [argument] = [], options }) => ({
      name,
      words: (argument?.choices ?? []).map((text) => ({ text, summary: argument?.summary ?? '' })),
      options: [...Object.entries(options).flatMap(([key, row]) => completeOption(key, row)), HELP],
    })),
    // After the two-word commands with the same prefix: the first match wins.
    ...[...first.keys()].flatMap((word) => {
      const words = commands.flatMap(({ name, summary }) =>
        name.startsWith(`${word} `) ? [{ text: name.slice(word.length + 1), summary }] : [],
      );
      return words.length === 0 ? [] : [{ name: word, words, options: [HELP] }];
    }),
  ];
}

function completeOption(key: string, row: OptionRow): readonly OptionCompletion[] {
  const text = toFlag(key);
  const { summary } = row;
  switch (row.kind) {
    case 'flag':
      return [{ text, summary, value: 'none' }];
    case 'switch':
      return [
        { text, summary, value: 'none' },
        { text: toFlag(`no-${key}`), summary: row.negatedSummary, value: 'none' },
      ];
    case 'choice':
      return [{ text, summary, value: row.choices }];
    default:
      return [{ text, summary, value: row.value === 'FILE' ? 'file' : 'any' }];
  }
}
