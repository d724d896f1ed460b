import type { CommandCompletions, OptionCompletion } from './completions.ts';

export const renderFish = (all: readonly CommandCompletions[]): string => `# postern for fish
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
${all.flatMap(renderCommand).join('\n')}`;

function renderCommand({ name, words, options }: CommandCompletions): readonly string[] {
  const exactly = `-n ${quote(`__postern_is ${quote(name)}`)}`;
  const within = `-n ${quote(`__postern_is ${quote(name === '' ? '' : `${name}( .*)?`)}`)}`;
  return [
    ...words.map(
      ({ text, summary }) =>
        `complete -c postern ${exactly} -a ${quote(text)} -d ${quote(summary)}`,
    ),
    ...options.map(
      (option) =>
        `complete -c postern ${within} -l ${option.text.slice(2)}${renderValue(option)} -d ${quote(option.summary)}`,
    ),
  ];
}

function renderValue({ value }: OptionCompletion): string {
  if (value === 'none') return '';
  if (value === 'file') return ' -rF';
  return value === 'any' ? ' -x' : ` -x -a ${quote(value.join(' '))}`;
}

/** Within single quotes fish knows \\' and \\\\. */
const quote = (text: string): string => `'${text.replace(/[\\']/g, '\\$&')}'`;
