// What the gateway offers, beside the servers of postern.yaml.
import { createLocalCatalog } from 'postern/define';
import { timeIn } from './tools/time-in.mjs';

export default createLocalCatalog({ tools: [timeIn] });
