// Commands as rows: from them come the parser, the help, the completions and docs/cli.md.

import type { Invocation } from './invocation.ts';

/** `--check`: true where it is given. */
export const flagOption = (summary: string) => ({ kind: 'flag', summary }) as const;

/** `--watch` or `--no-watch`: undefined where neither is given. */
export const toggle = (summary: string, negatedSummary: string) =>
  ({ kind: 'switch', summary, negatedSummary }) as const;

interface TextRules {
  /** True where `-` is a value: it is read from standard input. */
  readonly takesStandardInput?: true;
  /** Advice for those who write `-` for the file. */
  readonly standardInput?: string;
  /** Says what is wrong with a value, in words that follow `--port: `. */
  readonly findProblem?: (value: string) => string | undefined;
}

/**
 * `--config FILE`. `value` is the placeholder in the help, of which the shell completes `FILE`; `example` is one for the error
 * message where the value is missing.
 */
export const textOption = (
  value: string,
  example: string,
  summary: string,
  rules: TextRules = {},
) => ({ kind: 'text', value, example, summary, ...rules }) as const;

/** `--item NAME`, which may be repeated. */
export const listOption = (
  value: string,
  example: string,
  summary: string,
  rules: Pick<TextRules, 'takesStandardInput'> = {},
) => ({ kind: 'list', value, example, summary, ...rules }) as const;

/** `--store embedded`: one of a few. */
export const choiceOption = <const Choice extends string>(
  value: string,
  choices: readonly Choice[],
  summary: string,
) => ({ kind: 'choice', value, choices, summary }) as const;

export type OptionRow = ReturnType<
  typeof flagOption | typeof toggle | typeof textOption | typeof listOption | typeof choiceOption
>;

/** Rows by their names in code: `dryRun` is written `--dry-run`. */
type OptionRows = Readonly<Record<string, OptionRow>>;

interface ValuesByKind {
  readonly flag: boolean;
  readonly switch: boolean | undefined;
  readonly text: string | undefined;
  readonly list: readonly string[];
}

type OptionValue<Row extends OptionRow> = Row extends {
  readonly choices: readonly (infer Choice)[];
}
  ? Choice | undefined
  : ValuesByKind[Exclude<Row['kind'], 'choice'>];

/** Values that the user gave, as `run` gets them. */
type OptionValues<Rows extends OptionRows> = {
  readonly [Name in keyof Rows]: OptionValue<Rows[Name]>;
};

/** An operand, which stands behind the name of the command: `postern doctor URL`. */
export interface CommandArgument {
  readonly name: string;
  readonly summary: string;
  readonly isRequired?: true;
  /** The only values that are allowed, where there are few. */
  readonly choices?: readonly string[];
}

export interface Command<Rows extends OptionRows = OptionRows> {
  /** One word, or two: the first is a group (`GROUPS` in commands.ts). */
  readonly name: string;
  /** In the list of commands. No full stop. */
  readonly summary: string;
  /** More, for its own help and page: sentences, one paragraph each. */
  readonly description: readonly string[];
  readonly operands?: readonly CommandArgument[];
  readonly options: Rows;
  /** By what is typed, with `postern`: what it does. */
  readonly examples: Readonly<Record<string, string>>;
  /** The meaning of its exit code 1, where that is more than "it failed". */
  readonly exitCode1?: string;
  /** Imports what it needs when it runs: `start` loads nothing of `dev`. */
  run(
    values: OptionValues<Rows>,
    operands: readonly string[],
    invocation: Invocation,
  ): Promise<void> | void;
}

/** Gives `run` the types of the options. */
export const defineCommand = <const Rows extends OptionRows>(command: Command<Rows>): Command =>
  command;

/** `dryRun` is `--dry-run`. */
export const toFlag = (name: string): string =>
  `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

// Options that several commands have.

export const CATALOG = textOption(
  'FILE',
  'catalog.js',
  'serve the tools, prompts and resources of FILE instead of the built-in ones',
);

export const CONFIG = textOption(
  'FILE',
  'mcp.json',
  'put the MCP servers of FILE (JSON or YAML) behind the gateway, with its rules',
);

const MAX_PORT = 65_535;

export const PORT = textOption('N', '3010', 'listen on this port instead of PORT', {
  findProblem(given) {
    const isPort = /^[1-9]\d{0,4}$/.test(given) && Number(given) <= MAX_PORT;
    return isPort ? undefined : `${JSON.stringify(given)} is not a number from 1 to 65535.`;
  },
});

/** For `postern doctor` and `postern lock`: a user's access token, for what `summary` says. */
export const tokenOptions = (summary: string) => ({
  token: textOption('TOKEN', '- <token.txt', `${summary} - reads it from standard input`, {
    takesStandardInput: true,
  }),
  tokenFile: textOption(
    'FILE',
    'token.txt',
    'a file with this token: other users of the machine can read what follows --token',
    { standardInput: '--token -' },
  ),
});

export const JSON_OUTPUT = flagOption('print JSON, for programs');
