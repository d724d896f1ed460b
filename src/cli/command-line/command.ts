// Declares commands as rows; the parser, the help, the completions and docs/cli.md are generated from them.

import type { Invocation } from './invocation.ts';

/** `--check`: true if given. */
export const flagOption = (summary: string) => ({ kind: 'flag', summary }) as const;

/** `--watch` or `--no-watch`: undefined if neither is given. */
export const toggle = (summary: string, negatedSummary: string) =>
  ({ kind: 'switch', summary, negatedSummary }) as const;

interface TextRules {
  /** True if the value `-` means standard input. */
  readonly takesStandardInput?: true;
  /** Advice for users who pass `-` as the file. */
  readonly standardInput?: string;
  /** Describes the problem with a value; the text follows `--port: `. */
  readonly findProblem?: (value: string) => string | undefined;
}

/**
 * `--config FILE`. `value` is the placeholder in the help; the shell completes file names for `FILE`. The error message for a
 * missing value quotes `example`.
 */
export const textOption = (
  value: string,
  example: string,
  summary: string,
  rules: TextRules = {},
) => ({ kind: 'text', value, example, summary, ...rules }) as const;

/** `--item NAME`, repeatable. */
export const listOption = (
  value: string,
  example: string,
  summary: string,
  rules: Pick<TextRules, 'takesStandardInput'> = {},
) => ({ kind: 'list', value, example, summary, ...rules }) as const;

/** `--store embedded`: one of a few words. */
export const choiceOption = <const Choice extends string>(
  value: string,
  choices: readonly Choice[],
  summary: string,
) => ({ kind: 'choice', value, choices, summary }) as const;

export type OptionRow = ReturnType<
  typeof flagOption | typeof toggle | typeof textOption | typeof listOption | typeof choiceOption
>;

/** Rows by their names in code: `dryRun` is typed `--dry-run`. */
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

/** The values that the user gave, as passed to `run`. */
type OptionValues<Rows extends OptionRows> = {
  readonly [Name in keyof Rows]: OptionValue<Rows[Name]>;
};

/** An operand after the name of the command: `postern doctor URL`. */
export interface CommandArgument {
  readonly name: string;
  readonly summary: string;
  readonly isRequired?: true;
  /** The allowed values, if there are only a few. */
  readonly choices?: readonly string[];
}

export interface Command<Rows extends OptionRows = OptionRows> {
  /** One word, or two: the first is a group (`GROUPS` in commands.ts). */
  readonly name: string;
  /** For the list of commands. No full stop. */
  readonly summary: string;
  /** Additional sentences for the command's help and page, one paragraph each. */
  readonly description: readonly string[];
  readonly operands?: readonly CommandArgument[];
  readonly options: Rows;
  /** Maps an example command line, including `postern`, to its effect. */
  readonly examples: Readonly<Record<string, string>>;
  /** The meaning of exit code 1, if it is more specific than "it failed". */
  readonly exitCode1?: string;
  /** Imports its modules when it runs: `start` loads no code of `dev`. */
  run(
    values: OptionValues<Rows>,
    invocation: Invocation,
    operands: readonly string[],
  ): Promise<void> | void;
}

/** Infers the types of the options for `run`. */
export const defineCommand = <const Rows extends OptionRows>(command: Command<Rows>): Command =>
  command;

/** `dryRun` becomes `--dry-run`. */
export const toFlag = (name: string): string =>
  `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

// Options shared by several commands.

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

/** For `postern doctor` and `postern lock`: a user's access token, whose purpose `summary` states. */
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
