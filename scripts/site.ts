// npm run build calls this: docs/*.md → dist/site, which the service serves (§4.1).
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { renderSite } from './render-site.ts';

const target = new URL('../dist/site/', import.meta.url);

const files = await renderSite(new URL('../docs/', import.meta.url));
await rm(target, { recursive: true, force: true });
for (const [name, content] of files) {
  const file = fileURLToPath(new URL(name, target));
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, content);
}
console.log(`dist/site: ${files.size} files`);
