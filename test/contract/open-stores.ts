// For files that could end the process: `node --import tsx open-stores.ts FOLDER…` prints one line
// per folder, with its content or why it was refused.
import { describeCause } from '../../src/platform/log.ts';
import { contentOf } from './store-content.ts';

async function lookAt(dataDir: string): Promise<object> {
  try {
    return { content: await contentOf(dataDir) };
  } catch (error) {
    return { refused: describeCause(error) };
  }
}

for (const dataDir of process.argv.slice(2)) {
  process.stdout.write(`${JSON.stringify({ dataDir, ...(await lookAt(dataDir)) })}\n`);
}
