// The three bytes that some programs write before a text in UTF-8. They are not part of it: `fetch` and event streams drop them.

const MARK = Buffer.from('\uFEFF');

export const dropByteOrderMark = (bytes: Buffer): Buffer =>
  bytes[0] === MARK[0] && bytes.subarray(0, MARK.length).equals(MARK)
    ? bytes.subarray(MARK.length)
    : bytes;

/** True if the bytes of a text, which came in pieces, begin with it. */
export function hasByteOrderMark(pieces: readonly Uint8Array[]): boolean {
  const [first] = pieces;
  // Nearly none does.
  if (first?.[0] !== MARK[0]) return false;
  const head = pieces.slice(0, MARK.length).map((piece) => piece.subarray(0, MARK.length));
  return Buffer.concat(head).subarray(0, MARK.length).equals(MARK);
}
