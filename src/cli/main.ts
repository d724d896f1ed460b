#!/usr/bin/env node
// All other modules are loaded later: an older Node.js would print a stack trace while loading them.
const OLDEST = { major: 20, minor: 20 };

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);

if (major < OLDEST.major || (major === OLDEST.major && minor < OLDEST.minor)) {
  console.error(
    `Postern needs Node.js 24 (20.20, 22.22 and 26 also work), and this is ${process.version}. Install it from https://nodejs.org or with your version manager (nvm install 24), and run npm ci again.`,
  );
  process.exitCode = 1;
} else {
  const { runPostern } = await import('./run-postern.ts');
  const { endProcess } = await import('./command-line/process-end.ts');
  // The event loop ran empty before the command finished: without this, the process would exit as if it had succeeded.
  const endUnfinished = () => {
    console.error(
      'The command did not finish: it waited for an event that never came. Run it again; if this happens again, please report it.',
    );
    process.exitCode = 1;
  };
  process.once('beforeExit', endUnfinished);
  // A reader that closes the pipe early, such as `head`, ends the command silently.
  process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    if (code !== 'EPIPE') console.error(`The output cannot be written: ${message}`);
    void endProcess(code === 'EPIPE' ? undefined : 1, console.error);
  });
  // Not awaited: the command ends the process itself.
  void runPostern({ process, console }).then(() => process.off('beforeExit', endUnfinished));
}
