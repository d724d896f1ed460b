// Command lines that the user can type here: what is suggested has the form in which this process was started.

import { existsSync } from 'node:fs';
import { basename, dirname, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PACKAGE_ROOT } from '../../platform/own-files.ts';
import { toShellWord } from '../../platform/text.ts';

/** The process of a command, which it reads and writes besides files; tests call commands with their own. The current folder is the process's. */
export interface Invocation {
  readonly process: InvokedProcess;
  readonly console: Pick<Console, 'log' | 'error'>;
}

/** The part of a process that a command uses. */
export interface InvokedProcess {
  readonly argv: readonly string[];
  /** `.env` and options complete it. */
  readonly env: NodeJS.ProcessEnv;
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly stdout: NodeJS.WritableStream & { readonly isTTY?: boolean };
  readonly stderr: NodeJS.WritableStream & { readonly isTTY?: boolean };
  exitCode?: number | string | null | undefined;
  exit(code?: number): void;
}

/** Values of options, or none: the rows in commands.ts say what each is for. */
export type Texts<Name extends string> = Readonly<Record<Name, string | undefined>>;
export type Flags<Name extends string> = Readonly<Record<Name, boolean>>;

/** The process as it was started: whatever suggests a command line looks at how this one was typed. */
export type TypedAs = Pick<InvokedProcess, 'argv' | 'env'>;

/** `postern connect`, `npx postern connect` or `node dist/cli/main.js connect`. */
export const describeCommand = (words: readonly string[], typed: TypedAs): string =>
  `${describeProgram(typed)} ${join(words)}`;

/** The command line of this process, with another port. */
export function describeWithPort(port: number): string {
  const given = process.argv.slice(2).filter((arg, index, all) => !isPort(arg, all[index - 1]));
  const { npm_lifecycle_event: script, npm_lifecycle_script: scriptText = '' } = process.env;
  if (process.env.npm_command !== 'run-script' || script === undefined)
    return describeCommand([...given, '--port', String(port)], process);
  const ofScript = scriptText.split(/\s+/);
  const added = given.filter((arg) => !ofScript.includes(arg));
  return `npm run ${script} -- ${join([...added, '--port', String(port)])}`;
}

export const isRunByNpx = (env: NodeJS.ProcessEnv): boolean => env.npm_command === 'exec';

function describeProgram({ argv, env }: TypedAs) {
  const [, script = ''] = argv;
  // A link to the command in a folder of a project is in nobody's PATH.
  if (isRunByNpx(env) || script.includes('/node_modules/') || isInCheckout()) return 'npx postern';
  return basename(script) === 'postern'
    ? 'postern'
    : join(['node', relative(process.cwd(), script)]);
}

/** There npx runs what lies in it. */
export const isInCheckout = (): boolean =>
  SOURCE_FOLDER !== undefined && process.cwd() === dirname(fileURLToPath(SOURCE_FOLDER));

const isPort = (arg: string, former: string | undefined) =>
  arg === '--port' || former === '--port' || arg.startsWith('--port=');

const join = (words: readonly string[]) => words.map(toShellWord).join(' ');

const sourceFolder = new URL('src/', PACKAGE_ROOT);

/** The sources, where this is a checkout: an installed package has none. */
export const SOURCE_FOLDER: URL | undefined = existsSync(sourceFolder) ? sourceFolder : undefined;
