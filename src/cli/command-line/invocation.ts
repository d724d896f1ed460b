// Suggests command lines in the form that the user started this process with.

import { existsSync } from 'node:fs';
import { basename, dirname, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PACKAGE_ROOT } from '../../platform/own-files.ts';
import { toShellWord } from '../../platform/text.ts';

/**
 * The process of a command, with its input and output except files; tests pass their own. The current folder always comes from
 * the real process.
 */
export interface Invocation {
  readonly process: InvokedProcess;
  readonly console: Pick<Console, 'log' | 'error'>;
}

/** The part of `process` that a command uses. */
export interface InvokedProcess {
  readonly argv: readonly string[];
  /** Completed from `.env` and from options. */
  readonly env: NodeJS.ProcessEnv;
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly stdout: NodeJS.WritableStream & { readonly isTTY?: boolean };
  readonly stderr: NodeJS.WritableStream & { readonly isTTY?: boolean };
  exitCode?: number | string | null | undefined;
  exit(code?: number): void;
}

/** Optional values of options; their rows in commands.ts describe them. */
export type Texts<Name extends string> = Readonly<Record<Name, string | undefined>>;
export type Flags<Name extends string> = Readonly<Record<Name, boolean>>;

/** The part of the process that shows suggestions how the user typed the command. */
export type TypedAs = Pick<InvokedProcess, 'argv'>;

/** `postern connect`, `npx postern connect` or `node dist/cli/main.js connect`. */
export const describeCommand = (words: readonly string[], typed: TypedAs): string =>
  `${describeProgram(typed)} ${join(words)}`;

/** This process's command line, with a different port. */
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

function describeProgram({ argv }: TypedAs) {
  const [, script = ''] = argv;
  // Elsewhere, npx would run the package that has this name in the registry.
  if (existsSync('node_modules/.bin/postern') || isInCheckout()) return 'npx postern';
  return basename(script) === 'postern' && !script.includes('/node_modules/')
    ? 'postern'
    : join(['node', relative(process.cwd(), script)]);
}

/** As `describeCommand`, for readers who are in another folder, in which npx and relative paths would mean something else. */
export const describeCommandHere = (words: readonly string[], typed: TypedAs): string =>
  `cd ${toShellWord(process.cwd())} && ${describeCommand(words, typed)}`;

/** In a checkout, npx runs the checkout's own command. */
export const isInCheckout = (): boolean =>
  SOURCE_FOLDER !== undefined && process.cwd() === dirname(fileURLToPath(SOURCE_FOLDER));

const isPort = (arg: string, former: string | undefined) =>
  arg === '--port' || former === '--port' || arg.startsWith('--port=');

const join = (words: readonly string[]) => words.map(toShellWord).join(' ');

const sourceFolder = new URL('src/', PACKAGE_ROOT);

/** The folder of the sources in a checkout; undefined in an installed package. */
export const SOURCE_FOLDER: URL | undefined = existsSync(sourceFolder) ? sourceFolder : undefined;
