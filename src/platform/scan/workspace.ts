// Bodies in pieces are joined here: the memory of the WebAssembly module that scans them, so that nothing is copied for it.
import { SCAN_MODULE } from './scan-module.ts';

export interface Workspace {
  /** For a body, which is good until the next one is put here. */
  readonly bytes: Buffer;
  /** The place where `scan` says what it found: addresses, of which `bytes` begins at `TEXT`. */
  readonly table: Uint32Array;
  /** `scanObject` of wasm/scan-json.ts. */
  readonly scan: (start: number, end: number, sought: bigint, maxValues: number) => number;
}

/** As wasm/scan-json.ts divides the memory: what it uses is before the text. */
export const TEXT = 8192;
/** It reads so far behind a text at most. */
const READ_BEHIND = 128;
const PAGE = 65_536;
const USUAL_PAGES = 5;
const MAX_PAGES = 128;

/**
 * A workspace for so many bytes. Nearly all bodies share the usual one: a buffer of its own for each would be most of what its
 * call allocates, and the collector would run for it. One of up to 8 MiB stays until the collector runs, since its pages take longer
 * to be had from the system than to be scanned. Undefined for more than that, and where no such module can run.
 */
export function openWorkspace(length: number): Workspace | undefined {
  const pages = Math.ceil((TEXT + length + READ_BEHIND) / PAGE);
  if (pages > MAX_PAGES) return undefined;
  if (pages <= USUAL_PAGES) {
    usual ??= createWorkspace(USUAL_PAGES);
    return usual;
  }
  const kept = large?.deref();
  if (kept !== undefined && length <= kept.bytes.length) return kept;
  const created = createWorkspace(2 ** Math.ceil(Math.log2(pages)));
  large = created && new WeakRef(created);
  return created;
}

let usual: Workspace | undefined;
let large: WeakRef<Workspace> | undefined;
let compiled: object | undefined;
/** Each further try would cost a body the compiler, or the engine some collections of all memory before it gives up. */
let isRefused = false;

/** Undefined on a processor without vector instructions, and once there was no memory, or no address space, for it. */
function createWorkspace(pages: number): Workspace | undefined {
  if (isRefused) return undefined;
  try {
    compiled ??= new WebAssembly.Module(Buffer.from(SCAN_MODULE, 'base64'));
    const memory = new WebAssembly.Memory({ initial: pages, maximum: pages });
    const { exports } = new WebAssembly.Instance(compiled, { env: { memory } });
    const bytes = Buffer.from(memory.buffer, TEXT, pages * PAGE - TEXT - READ_BEHIND);
    return { bytes, table: new Uint32Array(memory.buffer, 0, TEXT / 4), scan: exports.scanObject };
  } catch {
    isRefused = true;
    return undefined;
  }
}

/** The part of it that is used here: the types of Node.js do not have it. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Memory: new (size: { initial: number; maximum: number }) => { buffer: ArrayBuffer };
  readonly Instance: new (
    module: object,
    imports: { env: { memory: object } },
  ) => { exports: { scanObject: Workspace['scan'] } };
};
