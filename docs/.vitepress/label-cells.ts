// On a phone every row of a table is a card (style.css), and each cell says which column it belongs to.
import type { MarkdownRenderer } from 'vitepress';

type Tokens = ReturnType<MarkdownRenderer['parse']>;

export function labelCells(md: MarkdownRenderer): void {
  md.core.ruler.push('label-cells', (state) => addLabels(state.tokens));
}

function addLabels(tokens: Tokens): void {
  let heads: string[] = [];
  let column = 0;
  tokens.forEach((token, at) => {
    if (token.type === 'table_open') heads = [];
    if (token.type === 'tr_open') column = 0;
    if (token.type === 'th_open') heads.push(toText(tokens[at + 1]));
    if (token.type !== 'td_open') return;
    const label = heads[column++];
    if (label) token.attrSet('data-label', label);
  });
}

/** Without the signs of Markdown. */
const toText = (heading: Tokens[number] | undefined): string =>
  (heading?.children ?? []).map(({ content }) => content).join('');
