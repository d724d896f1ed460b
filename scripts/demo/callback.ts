import { createServer } from 'node:http';

export interface Callback {
  readonly redirectUri: string;
  /** Resolves to the address that the browser came back to. */
  readonly visited: Promise<URL>;
  close(): void;
}

/** A loopback listener for the redirect of a native client (RFC 8252 §7.3). */
export async function listenForCallback(): Promise<Callback> {
  let arrive: (url: URL) => void = () => {};
  const visited = new Promise<URL>((resolve) => {
    arrive = resolve;
  });
  const server = createServer((req, res) => {
    const url = new URL(req.url ?? '/', redirectUri);
    const isCallback = url.pathname === '/callback';
    res.writeHead(isCallback ? 200 : 404, { 'Content-Type': 'text/plain; charset=utf-8' });
    res.end(isCallback ? 'Done. Close this page and look at the terminal.' : 'Not here.');
    if (isCallback) arrive(url);
  });
  await new Promise<void>((listening, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', listening);
  });
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const redirectUri = `http://127.0.0.1:${port}/callback`;
  return {
    redirectUri,
    visited,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
