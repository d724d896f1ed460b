// npm run types: the theme of the site, with its Vue components. vue-tsc needs the JavaScript API of TypeScript 5.
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { run } from 'vue-tsc';

const project = fileURLToPath(new URL('../docs/.vitepress/tsconfig.json', import.meta.url));
process.argv.push('--noEmit', '--project', project);
run(createRequire(import.meta.url).resolve('typescript-5/lib/tsc'));
