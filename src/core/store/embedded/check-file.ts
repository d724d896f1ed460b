// lmdb maps store.mdb into memory and believes what it finds there: a file that is cut off, or of
// another program, would end the process by a signal, without a word. It is looked at before.
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { getErrorCode } from '../../errors/error-code.ts';
import { hasPagesBeyond, type Meta, PAGE_HEADER_BYTES, readMeta } from './pages.ts';

/** @throws Error when lmdb cannot open the file safely. A file that is not there is none. */
export function checkStoreFile(file: string): void {
  const descriptor = openIfThere(file);
  if (descriptor === undefined) return;
  try {
    const { size } = fstatSync(descriptor);
    if (size > 0) checkPages(descriptor, size);
  } finally {
    closeSync(descriptor);
  }
}

function openIfThere(file: string): number | undefined {
  try {
    return openSync(file, 'r');
  } catch (error) {
    if (getErrorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

function checkPages(descriptor: number, size: number): void {
  const read = (at: number, bytes: number): Buffer => {
    const buffer = Buffer.alloc(bytes);
    return buffer.subarray(0, readSync(descriptor, buffer, 0, bytes, at));
  };
  const metaAt = (at: number): Meta => readMeta(read(at, META_BYTES)) ?? throwForeign();
  const first = metaAt(0);
  const second = metaAt(first.pageBytes);
  const meta = second.transaction > first.transaction ? second : first;
  if (size >= (meta.lastPage + 1) * meta.pageBytes) return;
  // Pages that a transaction took and gave back are never written: short does not mean damaged.
  const pages = Math.floor(size / meta.pageBytes);
  const readPage = (page: number) => read(page * meta.pageBytes, meta.pageBytes);
  if (hasPagesBeyond(pages, meta, readPage)) {
    throw new Error(
      `store.mdb is damaged: it ends after ${size} bytes, before some of its records. Put a copy in its place, or move it away to begin with an empty store`,
    );
  }
}

/** More than a meta page has in use. */
const META_BYTES = PAGE_HEADER_BYTES + 256;

function throwForeign(): never {
  throw new Error('store.mdb is damaged, or of another program; move it away');
}
