// A stand-in for the system's browser: commands that hand the address to this process, which
// logs in, approves and follows the redirects to the client's own listener.
import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { logInAs } from '../demo/login.ts';

/** Whatever a client may call. */
const COMMANDS = ['xdg-open', 'open', 'sensible-browser', 'x-www-browser', 'www-browser'];

export interface TrialBrowser {
  /** Variables that a client needs to find it, besides PATH. */
  readonly env: Readonly<Record<string, string>>;
  /** For the front of PATH. */
  readonly folder: string;
  readonly problems: readonly string[];
  close(): void;
}

export async function startBrowser(folder: string): Promise<TrialBrowser> {
  const problems: string[] = [];
  const server = createServer((req, res) => {
    res.end();
    const target = new URL(req.url ?? '/', 'http://localhost').searchParams.get('url') ?? '';
    if (URL.canParse(target)) visit(new URL(target)).catch(note);
  });
  const note = (error: unknown) => void problems.push(String(error));
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  await writeCommands(folder, port);
  return {
    folder,
    problems,
    env: {
      BROWSER: join(folder, 'xdg-open'),
      DISPLAY: ':0',
      // No other browser is known, and none of a desktop's own commands is asked.
      XDG_CURRENT_DESKTOP: 'X-Generic',
      XDG_DATA_DIRS: folder,
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function visit(authorization: URL): Promise<void> {
  const redirectUri = authorization.searchParams.get('redirect_uri');
  if (redirectUri === null) return;
  const back = await logInAs('ada', authorization, redirectUri);
  if (back === undefined) throw new Error('The login did not lead back to the client.');
  await fetch(back);
}

async function writeCommands(folder: string, port: number): Promise<void> {
  await mkdir(folder, { recursive: true });
  const script = `#!${process.execPath}
const url = process.argv.slice(2).find((argument) => argument.startsWith('http'));
if (url) fetch('http://127.0.0.1:${port}/?url=' + encodeURIComponent(url)).catch(() => {});
`;
  const [first = '', ...others] = COMMANDS.map((name) => join(folder, name));
  await writeFile(first, script);
  await chmod(first, 0o755);
  for (const other of others) await symlink(first, other);
}
