import { readdir, readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { getErrorCode } from '../platform/error-code.ts';

export interface SiteFile {
  /** Where it is served: `/` for index.html, `/settings` for settings.html, else as it lies. */
  readonly path: string;
  /** Value of Content-Type. */
  readonly type: string;
  /** May have slots to fill in. */
  readonly isText: boolean;
  readonly bytes: Buffer;
}

export const HTML = 'text/html; charset=utf-8';

/** What the site consists of; a file of another kind is not served. */
const TYPES: Readonly<Record<string, string>> = {
  '.html': HTML,
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.webp': 'image/webp',
  '.ico': 'image/x-icon',
};

/** Every file of the folder and the folders in it; none when there is no such folder. */
export async function readPages(folder: URL): Promise<readonly SiteFile[]> {
  const names = await listFiles(folder);
  const files = names.flatMap((name) => {
    const type = TYPES[extname(name)];
    return type === undefined ? [] : [{ name, type }];
  });
  return Promise.all(
    files.map(async ({ name, type }) => ({
      path: toPath(name),
      type,
      isText: type.includes('charset'),
      bytes: await readFile(new URL(name, folder)),
    })),
  );
}

async function listFiles(folder: URL): Promise<readonly string[]> {
  try {
    const names = await readdir(folder, { recursive: true });
    return names.map((name) => name.replaceAll('\\', '/'));
  } catch (error) {
    if (getErrorCode(error) === 'ENOENT') return [];
    throw error;
  }
}

const toPath = (name: string): string =>
  name === 'index.html' ? '/' : `/${name.replace(/\.html$/, '')}`;
