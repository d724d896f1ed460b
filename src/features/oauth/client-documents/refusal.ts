/** A client id that is an https URL cannot be used; the message says why, to its developer. */
export class ClientDocumentRefused extends Error {
  override readonly name = 'ClientDocumentRefused';
}

/** @throws ClientDocumentRefused always. `cause` is for the log: it may name internal addresses. */
export function refuse(message: string, cause?: unknown): never {
  throw new ClientDocumentRefused(message, cause === undefined ? undefined : { cause });
}
