// What a command is: from these rows come the parser, the help, the completions and docs/cli.md.
import type { Invocation } from '../command/invocation.ts';

/** `--check`: true where it is given. */
export interface FlagOption {
  readonly kind: 'flag';
  readonly summary: string;
}

/** `--watch` or `--no-watch`: undefined where neither is given. */
interface SwitchOption {
  readonly kind: 'switch';
  readonly summary: string;
  readonly negatedSummary: string;
}

/** `--config FILE` */
export interface TextOption {
  readonly kind: 'text';
  /** The placeholder in the help. The shell completes `FILE`. */
  readonly value: string;
  readonly summary: string;
  /** For the error message where the value is missing. */
  readonly example: string;
  /** Whether `-` is a value: read it from standard input. */
  readonly takesStandardInput?: true;
  /** What to write instead where somebody writes `-` for the file. */
  readonly standardInput?: string;
  /** What is wrong with a value, in words that follow `--port: `. */
  readonly findProblem?: (value: string) => string | undefined;
}

/** `--item NAME`, which may be repeated. */
interface ListOption {
  readonly kind: 'list';
  readonly value: string;
  readonly summary: string;
  readonly example: string;
}

/** `--store embedded`: one of a few. */
interface ChoiceOption<Choice extends string = string> {
  readonly kind: 'choice';
  readonly value: string;
  readonly choices: readonly Choice[];
  readonly summary: string;
}

export type OptionRow = FlagOption | SwitchOption | TextOption | ListOption | ChoiceOption;

/** By their names in code: `dryRun` is written `--dry-run`. */
type OptionRows = Readonly<Record<string, OptionRow>>;

type OptionValue<Row extends OptionRow> = Row extends FlagOption
  ? boolean
  : Row extends SwitchOption
    ? boolean | undefined
    : Row extends ListOption
      ? readonly string[]
      : Row extends ChoiceOption<infer Choice>
        ? Choice | undefined
        : string | undefined;

/** What the user gave, as `run` gets it. */
type OptionValues<Rows extends OptionRows> = {
  readonly [Name in keyof Rows]: OptionValue<Rows[Name]>;
};

/** What may stand behind the name of the command: `postern doctor URL`. */
export interface CommandArgument {
  readonly name: string;
  readonly summary: string;
  readonly isRequired: boolean;
  /** Where only these are allowed. */
  readonly choices?: readonly string[];
}

export interface Example {
  /** As it is typed, with `postern`. */
  readonly command: string;
  readonly does: string;
}

interface CommandContext extends Invocation {
  /** All that there are. */
  readonly commands: readonly Command[];
}

export interface Command<Rows extends OptionRows = OptionRows> {
  /** One word, or two: the first is a group (`GROUPS` in commands/all.ts). */
  readonly name: string;
  /** In the list of commands. No full stop. */
  readonly summary: string;
  /** More, for its own help and page: sentences, one paragraph each. */
  readonly description: readonly string[];
  /** In their order. */
  readonly operands?: readonly CommandArgument[];
  readonly options: Rows;
  readonly examples: readonly Example[];
  /** What its exit code 1 means, where that is more than "it failed". */
  readonly exitCode1?: string;
  /** Imports what it needs when it runs: `start` loads nothing of `dev`. */
  run(
    values: OptionValues<Rows>,
    operands: readonly string[],
    context: CommandContext,
  ): Promise<void> | void;
}

/** Gives `run` the types of the options. */
export const defineCommand = <const Rows extends OptionRows>(command: Command<Rows>): Command =>
  command;

/** `dryRun` is `--dry-run`. */
export const toFlag = (name: string): string =>
  `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
