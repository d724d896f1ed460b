import type { Command } from '../command-line/command.ts';
import { renderBash } from './bash.ts';
import { listCompletions } from './completions.ts';
import { renderFish } from './fish.ts';
import { renderZsh } from './zsh.ts';

const SHELLS = { bash: renderBash, zsh: renderZsh, fish: renderFish } as const;

const isShell = (name: string): name is keyof typeof SHELLS => Object.hasOwn(SHELLS, name);

/** The script for a shell. */
export function renderCompletion(shell: string | undefined, commands: readonly Command[]): string {
  if (shell === undefined || !isShell(shell)) throw new Error(`No completion for ${shell}`);
  return SHELLS[shell](listCompletions(commands));
}
