import type { ServerResponse } from 'node:http';

/** Handed over at once: a slow caller's progress shows by such steps. */
export const SLICE_BYTES = 16_384;

/** Resolves when the last slice was handed over, not all of it before; never when the caller is gone. */
export async function writeSlices(res: ServerResponse, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length; at += SLICE_BYTES) {
    if (!res.write(bytes.subarray(at, at + SLICE_BYTES))) await drained(res);
  }
}

const drained = (res: ServerResponse) =>
  new Promise<void>((resolve) => res.once('drain', () => resolve()));
