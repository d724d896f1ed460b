// §18.5: what a rule is about.
import { compileGlob, type MatchGlob } from '../../platform/glob.ts';
import type { ItemKind } from '../../protocol/list-kinds.ts';

export interface Pattern {
  readonly kind: ItemKind;
  readonly glob: string;
}

/** `prompt:…` and `resource:…` are about those, all else about tools. */
export function parsePattern(pattern: string): Pattern {
  const [, kind, glob] = /^(prompt|resource):(.*)$/s.exec(pattern) ?? [];
  if (glob === undefined) return { kind: 'tool', glob: pattern };
  return { kind: kind === 'prompt' ? 'prompt' : 'resource', glob };
}

/** Whether one of the patterns fits an item of that kind, by the text that it is compared by. */
export function compileMay(patterns: readonly string[]): (kind: ItemKind, text: string) => boolean {
  const parsed = patterns.map(parsePattern);
  const globsOf = (wanted: ItemKind): readonly MatchGlob[] =>
    parsed.filter(({ kind }) => kind === wanted).map(({ glob }) => compileGlob(glob));
  const globs: Readonly<Record<ItemKind, readonly MatchGlob[]>> = {
    tool: globsOf('tool'),
    prompt: globsOf('prompt'),
    resource: globsOf('resource'),
  };

  return (kind, text) => globs[kind].some((matches) => matches(text));
}
