// What can stand where, for the scripts of all shells.
import { type Command, type OptionRow, toFlag } from '../command-line/command.ts';

export interface Completion {
  readonly text: string;
  readonly summary: string;
}

export interface OptionCompletion extends Completion {
  /** What follows it: nothing, the name of a file, one of some words, or what no shell can know. */
  readonly value: 'none' | 'file' | 'any' | readonly string[];
}

export interface CommandCompletions {
  /** One word, or two. */
  readonly name: string;
  /** What can follow in place of an option. */
  readonly words: readonly Completion[];
  readonly options: readonly OptionCompletion[];
}

const HELP: OptionCompletion = { text: '--help', summary: 'print help', value: 'none' };

/** Of every command, of every first word of two, and, with the name `''`, of what comes first. */
export function listCompletions(commands: readonly Command[]): readonly CommandCompletions[] {
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
    ...commands.map(completeCommand),
    // Behind those that begin with it: the first that fits counts.
    ...[...first.keys()].flatMap((word) => completeGroup(word, commands)),
  ];
}

function completeGroup(word: string, commands: readonly Command[]): readonly CommandCompletions[] {
  const words = commands.flatMap(({ name, summary }) =>
    name.startsWith(`${word} `) ? [{ text: name.slice(word.length + 1), summary }] : [],
  );
  return words.length === 0 ? [] : [{ name: word, words, options: [HELP] }];
}

const completeCommand = ({
  name,
  operands: [first] = [],
  options,
}: Command): CommandCompletions => ({
  name,
  words: (first?.choices ?? []).map((text) => ({ text, summary: first?.summary ?? '' })),
  options: [...Object.entries(options).flatMap(([key, row]) => completeOption(key, row)), HELP],
});

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
