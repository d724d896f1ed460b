// Loads the catalogue: the default export of --catalog FILE or POSTERN_CATALOG.

import { spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import * as loader from 'node:module';
import { relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Catalog } from '../../mcp/catalog/catalog.ts';
import { getErrorCode } from '../../platform/error-code.ts';
import { isObject } from '../../platform/json.ts';
import { CODE_FOLDER, getModuleUrl } from '../../platform/own-files.ts';
import { StartError } from '../command-line/errors.ts';
import * as hooks from './resolve-postern.ts';

const EXAMPLE = 'export default createLocalCatalog({ tools: […] });';

/** Undefined if no file is given. @throws StartError that describes the problem and its position. */
export async function loadCatalog(file: string | undefined): Promise<Catalog | undefined> {
  if (file === undefined) return undefined;
  const path = resolve(file);
  if (!statSync(path, { throwIfNoEntry: false })?.isFile())
    throw new StartError(
      `--catalog: the file ${path} does not exist. It is named by --catalog or POSTERN_CATALOG.`,
    );
  if (/\.(jsonc?|ya?ml)$/i.test(path))
    throw new StartError(
      `--catalog: ${file} is not a catalogue, which is code (.mjs, .js, .ts). Pass a file with MCP servers with --config ${file}.`,
    );
  registerPosternResolver();
  const module: { readonly default?: unknown } = await import(pathToFileURL(path).href).catch(
    (error: unknown) => {
      throw explainLoadError(error, path);
    },
  );
  const exported = module.default;
  if (!isCatalog(exported)) throw new StartError(`${file} must export its catalogue: ${EXAMPLE}`);
  return exported;
}

const isCatalog = (exported: unknown): exported is Catalog =>
  isObject(exported) && 'offers' in exported && typeof exported.callTool === 'function';

// Reports an error in the author's file as one line with its position, without Postern's own stack.

/** `path` is the catalogue's file. */
function explainLoadError(error: unknown, path: string) {
  if (!(error instanceof Error)) return new StartError(`The catalogue threw ${String(error)}.`);
  if (getErrorCode(error) === 'ERR_UNKNOWN_FILE_EXTENSION')
    return new StartError(describeExtensionError(error));
  const place =
    findErrorHead(error.stack) ?? findAuthorFrame(error) ?? findSyntaxErrorPlace(error, path);
  const advice = error.message.includes('outside a module')
    ? '. Rename it to .mjs (.mts), or set "type": "module" in package.json.'
    : '';
  if (place !== undefined) return new StartError(`${place}: ${error.message}${advice}`);
  if (!(error instanceof SyntaxError)) return new StartError(error.message);
  // The error is in a different file, which Node.js names for an uncaught error (main.ts).
  error.stack = `${error.name}: ${error.message}`;
  return error;
}

function describeExtensionError({ message }: Error) {
  if (!/"\.[cm]?tsx?"/.test(message))
    return `${message}. The name of a catalogue ends in .js, .mjs, .ts or .mts.`;
  return (
    `Node.js ${process.version} cannot run TypeScript: ${message}.` +
    ' Use Node.js 22.18 or newer, write JavaScript (.mjs),' +
    " or install tsx (npm install -D tsx) and set NODE_OPTIONS='--import tsx'."
  );
}

/** Node.js puts the position of some errors before the message. */
function findErrorHead(text = '') {
  const [, file, line] = /^((?:file:\/\/)?\/\S+):(\d+)\n/.exec(text) ?? [];
  return file && `${formatPath(file)}:${line}`;
}

/** Undefined unless the error is in the file itself. Node.js does not expose the position, but prints it. */
function findSyntaxErrorPlace(error: Error, path: string) {
  if (!(error instanceof SyntaxError)) return undefined;
  const { stderr } = spawnSync(process.execPath, ['--check', path], { encoding: 'utf8' });
  return stderr.includes(error.message) ? findErrorHead(stderr) : undefined;
}

/** The innermost stack frame in the author's code. */
function findAuthorFrame({ stack = '' }: Error) {
  const frames = [...stack.matchAll(FRAME)];
  const isAuthors = (path: string) =>
    !toFileUrl(path).startsWith(CODE_FOLDER.href) && !path.includes('/node_modules/');
  const [, file, line, column] = frames.find(([, path = '']) => isAuthors(path)) ?? [];
  return file && `${formatPath(file)}:${line}:${column}`;
}

const FRAME = /^ {4}at (?:.*\()?(?:async )?((?:file:\/\/)?\/[^\s()]+?):(\d+):(\d+)\)?$/gm;

const toFileUrl = (file: string) => (file.startsWith('file:') ? file : pathToFileURL(file).href);

const formatPath = (file: string) => relative(process.cwd(), fileURLToPath(toFileUrl(file)));

/** Makes imports of `postern` and `postern/define` resolve to the running package. */
function registerPosternResolver() {
  const entries = {
    postern: getModuleUrl('index').href,
    'postern/define': getModuleUrl('define').href,
  };
  if (hasRegisterHooks(loader)) {
    hooks.initialize(entries);
    loader.registerHooks({ resolve: hooks.resolve });
  } else {
    // Node.js 20 runs hooks in a separate thread.
    loader.register(getModuleUrl('cli/setup/resolve-postern'), { data: entries });
  }
}

/** True in Node.js 22.15 and newer. */
const hasRegisterHooks = (
  module: object,
): module is { registerHooks(syncHooks: Pick<typeof hooks, 'resolve'>): void } =>
  'registerHooks' in module;
