import { quote } from '../command/quote.ts';
import type { CommandCompletions, Completion, OptionCompletion } from './completions.ts';

/** Works as a file `_postern` in `fpath`, and where `eval` reads it. */
export const renderZsh = (all: readonly CommandCompletions[]): string => `#compdef postern
_postern() {
  local command='' word prev=\${words[CURRENT - 1]}
  local -a candidates options
  for word in "\${(@)words[2,CURRENT - 1]}"; do
    [[ $word == -* ]] && break
    command="\${command:+$command }$word"
  done
  case $command in
${all.map(renderCommand).join('')}  esac
  (( $#candidates )) && _describe -t commands postern candidates
  (( $#options )) && [[ $PREFIX == -* || $#candidates == 0 ]] && _describe -o -t options option options
}
if [[ $funcstack[1] == _postern ]]; then
  _postern "$@"
else
  compdef _postern postern
fi`;

function renderCommand({ name, words, options }: CommandCompletions): string {
  const pattern = name === '' ? "''" : `${quote(name)}|${quote(`${name} `)}*`;
  return `    ${pattern})
      case $prev in
${options.map(renderValue).join('')}      esac
      options=(${options.map(describe).join(' ')})
      [[ $command == ${quote(name)} && $prev != -* ]] && candidates=(${words.map(describe).join(' ')})
      ;;
`;
}

function renderValue({ text, value }: OptionCompletion): string {
  if (value === 'none') return '';
  if (value === 'file') return `        ${text}) _files; return ;;\n`;
  return value === 'any'
    ? `        ${text}) return ;;\n`
    : `        ${text}) compadd ${value.join(' ')}; return ;;\n`;
}

const describe = ({ text, summary }: Completion): string =>
  quote(`${text.replaceAll(':', '\\:')}:${summary.replaceAll(':', '\\:')}`);
