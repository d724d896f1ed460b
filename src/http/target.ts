// RFC 9112 §3.2: the request target, taken apart and not decoded.

export interface Target {
  /** Of the absolute form, else undefined. */
  readonly authority: string | undefined;
  readonly path: string;
  readonly query: string;
}

export function targetOf(written: string): Target {
  const [, authority, rest = written] = /^https?:\/\/([^/?#]*)(.*)$/i.exec(written) ?? [];
  const mark = rest.indexOf('?');
  const path = mark === -1 ? rest : rest.slice(0, mark);
  return {
    authority,
    path: path === '' ? '/' : path,
    query: mark === -1 ? '' : rest.slice(mark + 1),
  };
}
