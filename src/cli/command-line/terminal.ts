// Output for people: a spinner while they wait, columns, counts, and names that others chose.

import { toVisibleJson } from '../../platform/invisible.ts';
import type { InvokedProcess } from './invocation.ts';

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
/** Milliseconds: what takes less needs none. */
const PATIENCE_MS = 300;
const FRAME_MS = 80;

/**
 * Shows `text` until the result is called. The cursor stays at the start of the line, so that what is printed meanwhile,
 * by another process perhaps, stands in its place: `text` is short.
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

/** A line for each row, whose cells stand below one another. */
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

/** A name that a server, a client or a caller chose: nothing of it moves the cursor of a terminal. */
export function toVisibleName(name: string): string {
  const json = toVisibleJson(name);
  return json === `"${name}"` ? name : json;
}
