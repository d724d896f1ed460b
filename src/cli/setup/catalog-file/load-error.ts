// An error in the author's file as one line that says where it is, without a stack of ours.
import { spawnSync } from 'node:child_process';
import { relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { getErrorCode } from '../../../platform/error-code.ts';
import { CODE_FOLDER } from '../../../platform/own-files.ts';
import { StartError } from '../../command/errors.ts';

/** `path` is the catalogue's file. */
export function explainLoadError(error: unknown, path: string): Error {
  if (!(error instanceof Error)) return new StartError([`The catalogue threw ${String(error)}.`]);
  if (getErrorCode(error) === 'ERR_UNKNOWN_FILE_EXTENSION')
    return new StartError([describeExtensionError(error)]);
  const place =
    findErrorHead(error.stack) ?? findAuthorFrame(error) ?? findSyntaxErrorPlace(error, path);
  if (place !== undefined)
    return new StartError([`${place}: ${error.message}${suggestModule(error)}`]);
  return error instanceof SyntaxError ? replaceStack(error) : new StartError([error.message]);
}

function describeExtensionError({ message }: Error): string {
  if (!/"\.[cm]?tsx?"/.test(message))
    return `${message}. The name of a catalogue ends in .js, .mjs, .ts or .mts.`;
  return (
    `Node.js ${process.version} cannot run TypeScript: ${message}.` +
    ' Use Node.js 22.18 or newer, write JavaScript (.mjs),' +
    " or install tsx (npm install -D tsx) and set NODE_OPTIONS='--import tsx'."
  );
}

const suggestModule = ({ message }: Error): string =>
  message.includes('outside a module')
    ? '. Rename it to .mjs (.mts), or set "type": "module" in package.json.'
    : '';

/** Node puts the place of some mistakes before the message. */
function findErrorHead(text = ''): string | undefined {
  const [, file, line] = /^((?:file:\/\/)?\/\S+):(\d+)\n/.exec(text) ?? [];
  return file && `${formatPath(file)}:${line}`;
}

/** Undefined unless it is in the file itself. Node keeps the place to itself, but prints it. */
function findSyntaxErrorPlace(error: Error, path: string): string | undefined {
  if (!(error instanceof SyntaxError)) return undefined;
  const { stderr } = spawnSync(process.execPath, ['--check', path], { encoding: 'utf8' });
  return stderr.includes(error.message) ? findErrorHead(stderr) : undefined;
}

/** The innermost place in a file of the author's. */
function findAuthorFrame({ stack = '' }: Error): string | undefined {
  const frames = [...stack.matchAll(FRAME)];
  const [, file, line, column] = frames.find(([, path = '']) => isAuthorFile(path)) ?? [];
  return file && `${formatPath(file)}:${line}:${column}`;
}

const isAuthorFile = (file: string): boolean =>
  !toFileUrl(file).startsWith(CODE_FOLDER.href) && !file.includes('/node_modules/');

const FRAME = /^ {4}at (?:.*\()?(?:async )?((?:file:\/\/)?\/[^\s()]+?):(\d+):(\d+)\)?$/gm;

const toFileUrl = (file: string): string =>
  file.startsWith('file:') ? file : pathToFileURL(file).href;

const formatPath = (file: string): string =>
  relative(process.cwd(), fileURLToPath(toFileUrl(file)));

/** In another file, which Node names when nobody catches the error (main.ts). */
function replaceStack(error: SyntaxError): SyntaxError {
  error.stack = `${error.name}: ${error.message}`;
  return error;
}
