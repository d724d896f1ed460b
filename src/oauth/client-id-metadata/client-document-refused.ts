/** A client id that is an https URL cannot be used; the message says why, to its developer. */
export class ClientDocumentRefused extends Error {
  override readonly name = 'ClientDocumentRefused';
  /** The host could not be reached, whatever its document says: for an operator to mend. */
  readonly isUnreachable: boolean;

  constructor(message: string, options?: { readonly cause?: unknown }, isUnreachable = false) {
    super(message, options);
    this.isUnreachable = isUnreachable;
  }
}

/** @throws ClientDocumentRefused always. */
export function failDocument(message: string): never {
  throw new ClientDocumentRefused(message);
}

/**
 * What happened, and what an operator can do about it. `cause` is for the log: it may name what is
 * inside the network, which strangers must not be told.
 */
export const createUnreachableError = (
  host: string,
  what: string,
  cause: unknown,
): ClientDocumentRefused =>
  new ClientDocumentRefused(
    `${what} The administrator of this gateway can check that it reaches ${host} on port 443, set HTTPS_PROXY if a proxy is required, or change CIMD_ALLOWED_HOSTS. The gateway's log has the reason.`,
    { cause },
    true,
  );
