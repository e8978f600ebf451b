// Forked by tests in the place of the trial process: dies of what it is asked, or without `ready` of nothing at all.
if (process.env['TRIAL_DIES_AT_START'] === 'yes') process.exit(3);
process.on('message', () => process.abort());
process.on('disconnect', () => process.exit());
process.send?.('ready');
