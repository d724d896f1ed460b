// §25.2: what commands say of the cost of lists.
import { countNoun } from '../../platform/text.ts';
import { type ListCost, WARNED_TOKENS } from '../../upstreams/budget/measure-lists.ts';

/** `/mcp/research: 8 tools, about 1,930 tokens`. */
export function describeCost({ kind, name, tools, tokens, isPersonal }: ListCost): string {
  const path = kind === 'all' ? '/mcp' : `/mcp/${name}`;
  const more = isPersonal ? ', and what only users see' : '';
  return `${path}: ${countNoun(tools, 'tool')}, about ${formatCount(tokens)} tokens${more}`;
}

export const isCostly = ({ tokens }: ListCost): boolean => tokens > WARNED_TOKENS;

export const describeExpensive = ({ expensive }: ListCost): string =>
  expensive.map(({ name, tokens }) => `${name} ${formatCount(tokens)}`).join(', ');

export const formatCount = (count: number): string => count.toLocaleString('en');
