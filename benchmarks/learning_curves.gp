# Plots solvers.csv, convergence.csv, noise_floor.csv and moments.csv of learning_curves: docs/plots/*.svg
set datafile separator ','
set datafile missing NaN
set terminal svg size 620,380 font 'sans-serif,13' background 'white'
set key top right samplen 2
set format y '10^{%L}'

curve(name) = sprintf("< grep '^%s,' %s/%s", name, folder, file)

file = 'solvers.csv'
set output 'docs/plots/solvers.svg'
set logscale xy
set xlabel 'rows / kd'
set ylabel '|w - w*| + |M - M*|_2'
set yrange [1e-9:3]
set key bottom left
plot curve('auto-exact') using 2:3 with lines lw 2 lc 2 title 'auto: first rows buffered', \
     curve('kalman-exact') using 2:3 with lines lw 2 lc 6 title 'kalman: no rows buffered', \
     curve('moment-exact') using 2:3 with lines lw 2 lc 4 title 'moment: method of the paper', \
     curve('auto-noise') using 2:3 with lines dt 2 lw 2 lc 2 title 'with noise 0.1', \
     curve('kalman-noise') using 2:3 with lines dt 2 lw 2 lc 6 title '', \
     curve('moment-noise') using 2:3 with lines dt 2 lw 2 lc 4 title ''
unset logscale x
set key top right
set yrange [*:*]

file = 'convergence.csv'
set output 'docs/plots/convergence.svg'
set logscale y
set xlabel 'rows / kd'
set ylabel '|w - w*| + |M - M*|_2'
plot curve('one-scan-5') using 2:3 with linespoints pt 7 ps 0.4 title 'one-scan, batches of 5kd', \
     curve('paper-5') using 2:3 with linespoints pt 7 ps 0.4 title 'paper, 5kd', \
     curve('one-scan-20') using 2:3 with linespoints pt 5 ps 0.5 title 'one-scan, 20kd', \
     curve('paper-20') using 2:3 with linespoints pt 5 ps 0.5 title 'paper, 20kd'

file = 'moments.csv'
set output 'docs/plots/moments.svg'
plot for [seed=1:5] curve(sprintf('gaussian-%d', seed)) using 2:3 with lines lc 4 \
       title (seed == 1 ? 'Gaussian moments, as in the paper' : ''), \
     for [seed=1:5] curve(sprintf('estimated-%d', seed)) using 2:3 with lines lc 2 lw 2 \
       title (seed == 1 ? 'estimated moments' : '')

set output 'docs/plots/noise_floor.svg'
set logscale xy
set xlabel 'rows in a batch'
set ylabel 'asymptotic error'
plot folder.'/noise_floor.csv' using 1:2 with linespoints pt 7 title 'noise 0.1', \
     '' using 1:3 with linespoints pt 7 title 'residual spectrum 0.01', \
     1.8*0.1*sqrt(100/x) with lines dt 2 title '1.8 s sqrt(d/n)'
