/** RFC 9110 §12.5.1, for one question: is the caller a browser, or a program? */
export function prefersHtml(accept: string | undefined): boolean {
  const weights = readWeights(accept);
  const html = weights.get('text/html') ?? 0;
  return html > (weights.get('application/json') ?? 0);
}

/** What a caller accepts (RFC 9110 §12.4.2), in lower case, and how much of 1. */
export const readWeights = (accept: string | undefined): ReadonlyMap<string, number> =>
  new Map(accept?.toLowerCase().split(',').map(parseRange));

function parseRange(range: string): [type: string, weight: number] {
  const [type = '', ...parameters] = range.split(';').map((part) => part.trim());
  const q = parameters.find((parameter) => parameter.startsWith('q='));
  return [type, q === undefined ? 1 : Number(q.slice(2)) || 0];
}
