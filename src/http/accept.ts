/** RFC 9110 §12.5.1, for one question: is the caller a browser, or a program? */
export function prefersHtml(accept: string | undefined): boolean {
  const weights = new Map(accept?.toLowerCase().split(',').map(parseRange));
  const html = weights.get('text/html') ?? 0;
  return html > (weights.get('application/json') ?? 0);
}

function parseRange(range: string): [type: string, weight: number] {
  const [type = '', ...parameters] = range.split(';').map((part) => part.trim());
  const q = parameters.find((parameter) => parameter.startsWith('q='));
  return [type, q === undefined ? 1 : Number(q.slice(2)) || 0];
}
