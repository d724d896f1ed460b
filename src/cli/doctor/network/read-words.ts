/** Characters. */
const MAX_LENGTH = 300;

/** What a page says, without its tags. In time that grows with its length alone: the other side may be hostile. */
export const readWords = (html: string): string =>
  dropUnread(html)
    .replace(/<[^<>]*>/g, ' ')
    .replace(/&#0?39;|&quot;/g, "'")
    .replace(/[^\x21-\x7e]+/g, ' ')
    // Our own state, which some pages repeat.
    .replace(/ state ?:? ?[\w-]{43}/, '')
    .trim()
    .slice(0, MAX_LENGTH);

/** Elements whose text nobody reads. From the first that does not end, the page stays as it is. */
function dropUnread(html: string): string {
  const opening = /<(script|style|head)\b/gi;
  let kept = '';
  let from = 0;
  for (let open = opening.exec(html); open !== null; open = opening.exec(html)) {
    const closing = new RegExp(`</${open[1]}>`, 'gi');
    closing.lastIndex = opening.lastIndex;
    if (closing.exec(html) === null) break;
    kept += `${html.slice(from, open.index)} `;
    from = closing.lastIndex;
    opening.lastIndex = from;
  }
  return kept + html.slice(from);
}
