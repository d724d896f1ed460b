/** Where the audit log goes. */
export type AuditDestination =
  | { readonly kind: 'stdout' }
  | { readonly kind: 'file'; readonly path: string };

/** `stdout` or `file:PATH`; undefined for anything else. */
export function parseAuditDestination(text: string): AuditDestination | undefined {
  if (text === 'stdout') return { kind: 'stdout' };
  const [, path] = /^file:(.+)$/s.exec(text) ?? [];
  return path === undefined ? undefined : { kind: 'file', path };
}
