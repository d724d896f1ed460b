// SEP-2640: the files of a skill, as they lie on the disk when it is defined.
import { isUtf8 } from 'node:buffer';
import { hash } from 'node:crypto';
import { type Dirent, readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { DefinitionError } from '../../../errors/gateway-error.ts';
import { getErrorCode } from '../../../platform/error-code.ts';
import type { ResourceContent } from '../content.ts';

export interface ReadFile {
  /** Names of the folders that it lies in, below the skill's, and its own. */
  readonly segments: readonly string[];
  readonly digest: string;
  /** Bytes. */
  readonly size: number;
  readonly mimeType: string;
  readonly content: ResourceContent;
}

/** SEP-2640 "Limits": more than this no client has to take. */
const MAX_FILES = 512;
const MAX_BYTES = 16_777_216;

/** All files, sorted by name; those that begin with a dot are left out. @throws DefinitionError for what cannot be a skill. */
export function readSkillFiles(folder: string): readonly ReadFile[] {
  const files: ReadFile[] = [];
  let bytes = 0;

  function readFolder(segments: readonly string[]): void {
    const path = join(folder, ...segments);
    for (const entry of listFolder(path)) {
      const here = [...segments, entry.name];
      if (entry.isDirectory()) readFolder(here);
      else addFile(here, entry, join(path, entry.name));
    }
  }

  function addFile(segments: readonly string[], entry: Dirent, path: string): void {
    // Where a link leads may be anywhere, and another place tomorrow.
    if (!entry.isFile()) throw new DefinitionError(`${path}: this is no file. Put a copy here.`);
    if (files.length === MAX_FILES) {
      throw new DefinitionError(
        `${folder}: a skill may have ${MAX_FILES} files, and this one has more.`,
      );
    }
    const content = readBytes(path);
    bytes += content.length;
    if (bytes > MAX_BYTES) {
      throw new DefinitionError(
        `${folder}: a skill may have ${MAX_BYTES} bytes, and this one has more.`,
      );
    }
    files.push(describeFile(segments, content));
  }

  readFolder([]);
  return files;
}

/** In one order on every machine. */
function listFolder(path: string): readonly Dirent[] {
  try {
    return readdirSync(path, { withFileTypes: true })
      .filter(({ name }) => !name.startsWith('.'))
      .sort((one, other) => (one.name < other.name ? -1 : 1));
  } catch (error) {
    return failToRead(path, error);
  }
}

function readBytes(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    return failToRead(path, error);
  }
}

function failToRead(path: string, error: unknown): never {
  const code = getErrorCode(error);
  if (code === undefined) throw error;
  throw new DefinitionError(`${path}: it cannot be read (${code}).`);
}

function describeFile(segments: readonly string[], bytes: Buffer): ReadFile {
  const isText = isUtf8(bytes);
  const ending = extname(segments.at(-1) ?? '').toLowerCase();
  return {
    segments,
    digest: `sha256:${hash('sha256', bytes, 'hex')}`,
    size: bytes.length,
    mimeType: MIME_TYPES[ending] ?? (isText ? 'text/plain' : 'application/octet-stream'),
    // The text has exactly these bytes, which clients compare with the digest.
    content: isText ? { text: bytes.toString('utf8') } : { blob: bytes.toString('base64') },
  };
}

const MIME_TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css',
  '.csv': 'text/csv',
  '.gif': 'image/gif',
  '.html': 'text/html',
  '.jpeg': 'image/jpeg',
  '.jpg': 'image/jpeg',
  '.js': 'text/javascript',
  '.json': 'application/json',
  '.md': 'text/markdown',
  '.mjs': 'text/javascript',
  '.pdf': 'application/pdf',
  '.png': 'image/png',
  '.py': 'text/x-python',
  '.sh': 'application/x-sh',
  '.svg': 'image/svg+xml',
  '.toml': 'application/toml',
  '.webp': 'image/webp',
  '.xml': 'application/xml',
  '.yaml': 'application/yaml',
  '.yml': 'application/yaml',
};
