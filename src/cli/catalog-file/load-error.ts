// What is wrong with the author's file: where, and no stack of ours.
import { relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { getErrorCode } from '../../core/errors/error-code.ts';
import { StartError } from '../start-error.ts';

/** Our own code, be it src/ or dist/. */
const OWN = new URL('../../', import.meta.url).href;

export function explainLoadError(error: unknown): Error {
  if (!(error instanceof Error)) return new StartError([`The catalogue threw ${String(error)}.`]);
  if (getErrorCode(error) === 'ERR_UNKNOWN_FILE_EXTENSION')
    return new StartError([endingProblem(error)]);
  const place = headOf(error) ?? frameOf(error);
  if (place !== undefined) return new StartError([`${place}: ${error.message}${hintFor(error)}`]);
  return error instanceof SyntaxError ? withoutStack(error) : new StartError([error.message]);
}

function endingProblem({ message }: Error): string {
  if (!/"\.[cm]?tsx?"/.test(message))
    return `${message}. A catalogue ends in .js, .mjs, .ts or .mts.`;
  return (
    `Node.js ${process.version} reads no TypeScript: ${message}.` +
    ' Use Node.js 22.18 or newer; or write JavaScript (.mjs);' +
    " or install tsx (npm install -D tsx) and set NODE_OPTIONS='--import tsx'."
  );
}

const hintFor = ({ message }: Error): string =>
  message.includes('outside a module')
    ? '. Let its name end in .mjs (.mts), or set "type": "module" in package.json.'
    : '';

/** Node puts the place of some mistakes before the message. */
function headOf({ stack = '' }: Error): string | undefined {
  const [, file, line] = /^((?:file:\/\/)?\/\S+):(\d+)\n/.exec(stack) ?? [];
  return file && `${shown(file)}:${line}`;
}

/** The innermost place in a file of the author's. */
function frameOf({ stack = '' }: Error): string | undefined {
  const frames = [...stack.matchAll(FRAME)];
  const [, file, line, column] = frames.find(([, at = '']) => isAuthors(at)) ?? [];
  return file && `${shown(file)}:${line}:${column}`;
}

const isAuthors = (file: string): boolean =>
  !urlOf(file).startsWith(OWN) && !file.includes('/node_modules/');

const FRAME = /^ {4}at (?:.*\()?(?:async )?((?:file:\/\/)?\/[^\s()]+?):(\d+):(\d+)\)?$/gm;

const urlOf = (file: string): string =>
  file.startsWith('file:') ? file : pathToFileURL(file).href;

const shown = (file: string): string => relative(process.cwd(), fileURLToPath(urlOf(file)));

/** Node alone knows where it is; it says so when nobody catches the error (main.ts). */
function withoutStack(error: SyntaxError): SyntaxError {
  error.stack = `${error.name}: ${error.message}`;
  return error;
}
