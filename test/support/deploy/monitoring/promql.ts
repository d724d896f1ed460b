// A PromQL expression as its own parser reads it: which metrics and labels it names.
import { parser } from '@prometheus-io/lezer-promql';

export interface Expression {
  readonly text: string;
  readonly selectors: readonly Selector[];
  /** What `by` groups by, and `without` and `on` name. */
  readonly grouping: readonly string[];
}

export interface Selector {
  readonly metric: string;
  readonly labels: readonly string[];
}

/** @throws Error where it is no PromQL. */
export function parseExpression(text: string): Expression {
  const selectors: { metric: string; labels: string[] }[] = [];
  const grouping: string[] = [];
  let isGrouping = false;
  parser.parse(text).iterate({
    enter({ name, from, to, type }) {
      const part = text.slice(from, to);
      if (type.isError) throw new Error(`No PromQL at ${from}: ${text}`);
      if (name === 'VectorSelector') selectors.push({ metric: '', labels: [] });
      if (name === 'GroupingLabels') isGrouping = true;
      const selector = selectors.at(-1);
      if (name === 'Identifier' && selector?.metric === '') selector.metric = part;
      if (name === 'LabelName') {
        if (isGrouping) grouping.push(part);
        else selector?.labels.push(part);
      }
    },
    leave({ name }) {
      if (name === 'GroupingLabels') isGrouping = false;
    },
  });
  return { text, selectors, grouping };
}
