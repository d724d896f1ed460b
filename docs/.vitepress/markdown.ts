// What the pages need beside VitePress's own Markdown, so that they also read well on a forge.
import type { MarkdownRenderer } from 'vitepress';
import { SLOTS } from '../../src/pages/slots.ts';
import { labelCells } from './label-cells.ts';

export function configureMarkdown(md: MarkdownRenderer): void {
  md.core.ruler.before('normalize', 'slots', (state) => {
    state.src = openSlots(state.src);
  });
  labelCells(md);
  // A wide table may scroll in its own frame; the keyboard must reach it.
  md.renderer.rules.table_open = () => '<div class="table" tabindex="0"><table>\n';
  md.renderer.rules.table_close = () => '</table></div>\n';
}

/** `${version}` is an example's own: nothing is to be filled in there. */
const openSlots = (markdown: string): string =>
  markdown.replace(
    /(?<!\$)\{(base_url|base_path|version)\}/g,
    (_, name: keyof typeof SLOTS) => SLOTS[name],
  );

/** As the common forges make them, so that one link works there and here. */
export const createAnchor = (heading: string): string =>
  heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
