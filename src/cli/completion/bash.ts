// Runs on bash 3.2 (macOS) as well, and needs no bash-completion.

import { quote } from '../command/quote.ts';
import type { CommandCompletions, OptionCompletion } from './completions.ts';

export const renderBash = (all: readonly CommandCompletions[]): string => `# postern for bash
_postern() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD - 1]} command='' candidates='' i line
  for ((i = 1; i < COMP_CWORD; i++)); do
    case \${COMP_WORDS[i]} in -*) break ;; esac
    command=\${command:+$command }\${COMP_WORDS[i]}
  done
  COMPREPLY=()
  case $command in
${all.map(renderCommand).join('')}  esac
  while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -W "$candidates" -- "$cur")
}
_postern_files() {
  local line
  while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$1")
  compopt -o filenames 2>/dev/null
}
complete -F _postern postern`;

function renderCommand({ name, words, options }: CommandCompletions): string {
  const values = options.map(renderValue).join('');
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

function renderValue({ text, value }: OptionCompletion): string {
  if (value === 'none') return '';
  if (value === 'file') return `        ${text}) _postern_files "$cur"; return ;;\n`;
  return value === 'any'
    ? `        ${text}) return ;;\n`
    : `        ${text}) candidates=${quote(value.join(' '))} ;;\n`;
}
