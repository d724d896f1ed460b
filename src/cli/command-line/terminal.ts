// Terminal output: a spinner, columns, counts, and names chosen by others.

import { toVisibleJson } from '../../platform/invisible.ts';
import type { InvokedProcess } from './invocation.ts';

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
/** Milliseconds: shorter waits need no spinner. */
const PATIENCE_MS = 300;
const FRAME_MS = 80;

/**
 * Shows `text` until the returned function is called. The cursor stays at the start of the line, so that other output, perhaps
 * from another process, overwrites the spinner: `text` must be short.
 */
export function showSpinner(text: string, { stderr: terminal, env }: InvokedProcess): () => void {
  if (!terminal.isTTY || env.TERM === 'dumb') return () => {};
  let frame = 0;
  let timer: NodeJS.Timeout;

  function draw() {
    terminal.write(`${FRAMES[frame % FRAMES.length]} ${text}\u001b[K\r`);
    frame += 1;
    timer = setTimeout(draw, FRAME_MS).unref();
  }

  timer = setTimeout(draw, PATIENCE_MS).unref();
  return () => {
    clearTimeout(timer);
    if (frame > 0) terminal.write('\u001b[K');
  };
}

/** One line per row, with aligned cells. */
export function alignColumns(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = (rows[0] ?? []).map((_cell, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  );
  return rows.map((row) => {
    const cells = row.map((cell, column) => cell.padEnd(widths[column] ?? 0));
    return cells.join('  ').trimEnd();
  });
}

/** `1,930` */
export const formatCount = (count: number): string => count.toLocaleString('en');

/** A name chosen by a server, a client or a caller, without terminal control characters. */
export function toVisibleName(name: string): string {
  const json = toVisibleJson(name);
  return json === `"${name}"` ? name : json;
}
