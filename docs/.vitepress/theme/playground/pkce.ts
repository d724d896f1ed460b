// RFC 7636, with what the browser has.

const toBase64Url = (bytes: Uint8Array): string =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');

/** 256 bits that nobody can guess. */
export const createRandomText = (): string =>
  toBase64Url(crypto.getRandomValues(new Uint8Array(32)));

export async function createPkce(): Promise<{
  readonly verifier: string;
  readonly challenge: string;
}> {
  const verifier = createRandomText();
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier));
  return { verifier, challenge: toBase64Url(new Uint8Array(hash)) };
}
