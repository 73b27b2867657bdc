package loop

// Update is the -update flag, for the tests outside of the package.
func Update() bool { return *update }
