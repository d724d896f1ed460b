// What a terminal shows while somebody waits; nothing else is told of it.

import type { InvokedProcess } from './invocation.ts';

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
/** Milliseconds: what takes less needs none. */
const PATIENCE_MS = 300;
const FRAME_MS = 80;

/**
 * Shows `text` until the result is called. The cursor stays at the start of the line, so that what is printed meanwhile,
 * by another process perhaps, stands in its place: `text` is short.
 */
export function showSpinner(
  text: string,
  { stderr: terminal, env }: Pick<InvokedProcess, 'stderr' | 'env'>,
): () => void {
  if (!terminal.isTTY || env.TERM === 'dumb') return () => {};
  let frame = 0;
  let timer: NodeJS.Timeout;

  function draw(): void {
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
